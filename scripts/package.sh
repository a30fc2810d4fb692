#!/usr/bin/env bash
# Builds in dist: the Debian package, the container's folder (dist/container has its Containerfile), SBOMs and checksums. The same commit gives the same bytes,
# in any folder: SOURCE_DATE_EPOCH is the commit's time if it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
tool() { # name module version
  local at=.tools/$1-$3
  if [ ! -x "$at" ]; then
    echo "building $1 $3 into .tools (once)" >&2
    mkdir -p .tools
    GOFLAGS='' GOBIN=$PWD/.tools go install "$2@$3"
    mv ".tools/$1" "$at"
  fi
  echo "$at"
}
nfpm=$(tool nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm "$NFPM_VERSION")
sbom=$(tool cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod "$SBOM_VERSION")

umask 022
rm -rf dist
mkdir -p dist/container/root/{usr/bin,tmp,var/lib/bahi}
scripts/verifier.sh # for the page /verify, which is built in
go build -ldflags "-s -w -X bahi/internal/app.Version=$VERSION" -o dist/bahi ./cmd/bahi
go build -ldflags "-s -w -X main.version=$VERSION" -o dist/bahi-verify ./cmd/bahi-verify
cp dist/bahi dist/bahi-verify dist/container/root/usr/bin
chmod 1777 dist/container/root/tmp
cp scripts/package/Containerfile dist/container

for program in bahi bahi-verify; do
  "$sbom" bin -json -noserial -version "$VERSION" -output "dist/$program.cdx.json" "dist/$program" 2>/dev/null
  # It contains the time of its run, which would make each build differ.
  sed -i "s|^\( *\"timestamp\": \)\".*\"|\1\"$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)\"|" "dist/$program.cdx.json"
done
# Debian compares versions: without a release's number, the newer commit is the newer version.
release=${VERSION#v}
[[ $release =~ ^[0-9]+\.[0-9]+ ]] || release=0.0.$SOURCE_DATE_EPOCH+$release
ARCH=$(go env GOARCH) VERSION=${release//-/.} "$nfpm" package --config scripts/package/nfpm.yaml --packager deb --target dist >/dev/null
(cd dist && sha256sum bahi bahi-verify ./*.cdx.json ./*.deb | sed 's| \./| |' >SHA256SUMS)
ls dist
