#!/usr/bin/env bash
# Takes pictures of all pages at 360 and 1280 pixels, light and dark, and puts them on one sheet: dist/pictures/index.html.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/dist/pictures
rm -rf "$folder"
mkdir -p "$folder"
CGO_ENABLED=0 BAHI_PICTURES=$folder go test -count=1 -parallel 2 ./http/pages -run 'Fit|TestAKhataPageIsPostedByTheKeyboard'
cd "$folder"
{
  echo '<!doctype html><meta charset="utf-8"><title>Pages of Bahi</title><style>img { vertical-align: top; margin: 4px; outline: 1px solid gray }</style>'
  for first in *-360-light.png; do
    page=${first%-360-light.png}
    echo "<h2>$page</h2>"
    for look in 360-light 360-dark 1280-light 1280-dark; do
      echo "<a href=\"$page-$look.png\"><img loading=\"lazy\" height=\"420\" src=\"$page-$look.png\" alt=\"$page, $look\"></a>"
    done
  done
} >index.html
echo "$(ls ./*.png | wc -l) pictures of pages: dist/pictures/index.html"
