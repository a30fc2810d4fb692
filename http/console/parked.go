package console

func (v *visit) parked() (page, error) {
	all, err := v.Projections.Parked(v.r.Context())
	return page{template: "parked", title: "Parked", body: all, live: true}, err
}

func (v *visit) retryParked() (string, error) {
	return Path + "/parked?done=retry", v.Builds.Retry(v.r.Context(), v.r.PathValue("name"))
}

func (v *visit) skipParked() (string, error) {
	return Path + "/parked?done=skip", v.skip(v.r.PathValue("name"))
}
