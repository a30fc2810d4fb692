package pages

// ResourcePaths returns the addresses of the lists of all resources.
func ResourcePaths() (paths []string) {
	var each func(all []*resource)
	each = func(all []*resource) {
		for _, r := range all {
			paths = append(paths, r.path())
			each(r.parts)
		}
	}
	each(resources)
	return paths
}
