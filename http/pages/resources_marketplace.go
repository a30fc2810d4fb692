package pages

// marketplaceResources are the resources of the marketplace.
var marketplaceResources = []*resource{}
