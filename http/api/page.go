package api

import "bahi/readmodels"

// The contract has three forms of a list: an array with X-Total-Count, which [Listed] returns, and two objects with the page's numbers,
// which [Paginated] and [MarketplacePage] return. The input of a list embeds [Limited], [Pages] or [MarketplacePageParams] for the
// parameters.

// Pages has the parameters page and page_size.
type Pages struct {
	Page     int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	PageSize int `query:"page_size" default:"50" minimum:"1" maximum:"100" doc:"Rows of a page"`
}

// Get returns the page.
func (p Pages) Get() readmodels.Page { return readmodels.Page{Number: p.Page, Size: p.PageSize} }

// Limited has the parameters page and limit.
type Limited struct {
	Page  int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	Limit int `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"Rows of a page"`
}

// Get returns the page.
func (p Limited) Get() readmodels.Page { return readmodels.Page{Number: p.Page, Size: p.Limit} }

// Array is a list, or a page of it, with the number of all its rows.
type Array[T any] struct {
	Total int64 `header:"X-Total-Count" doc:"Rows of all pages"`
	Body  []T
}

// Listed returns the rows of a page as an array.
func Listed[T any](rows []T, total int64, err error) (*Array[T], error) {
	if err != nil {
		return nil, err
	}
	return &Array[T]{Total: total, Body: full(rows)}, nil
}

// PageOf is a page as an object.
type PageOf[T any] struct {
	Items      []T   `json:"items" doc:"Records of this page"`
	Total      int64 `json:"total" doc:"Items of all pages"`
	Page       int   `json:"page" doc:"Number of the page, from 1"`
	PageSize   int   `json:"page_size" doc:"Maximum number of records per page"`
	TotalPages int64 `json:"total_pages" doc:"Number of pages"`
}

// Paginated returns the rows of a page as an object. Its arguments are the results of [readmodels.Paged].
func Paginated[T any](page readmodels.Page, rows []T, total int64, err error) (*Body[PageOf[T]], error) {
	if err != nil {
		return nil, err
	}
	size := int64(page.Size)
	return &Body[PageOf[T]]{Body: PageOf[T]{
		Items: full(rows), Total: total, Page: page.Number, PageSize: page.Size, TotalPages: (total + size - 1) / size,
	}}, nil
}

// MarketplacePageParams has the parameters page and limit in the marketplace's form.
type MarketplacePageParams struct {
	Page  int `query:"page" default:"1" minimum:"1" maximum:"1000000000" doc:"From 1"`
	Limit int `query:"limit" default:"20" minimum:"1" maximum:"100" doc:"Rows of a page"`
}

// Get returns the page.
func (p MarketplacePageParams) Get() readmodels.Page {
	return readmodels.Page{Number: p.Page, Size: p.Limit}
}

// DataOf is a page in the marketplace's form.
type DataOf[T any] struct {
	Data  []T   `json:"data" doc:"Records of this page"`
	Total int64 `json:"total" doc:"Rows of all pages"`
	Page  int   `json:"page" doc:"Number of the page, from 1"`
	Limit int   `json:"limit" doc:"Maximum number of records per page"`
}

// MarketplacePage returns the rows of a page in the marketplace's form. Its arguments are the results of [readmodels.Paged].
func MarketplacePage[T any](page readmodels.Page, rows []T, total int64, err error) (*Body[DataOf[T]], error) {
	if err != nil {
		return nil, err
	}
	return &Body[DataOf[T]]{Body: DataOf[T]{Data: full(rows), Total: total, Page: page.Number, Limit: page.Size}}, nil
}

// full returns an empty list for nil, which is an array in JSON.
func full[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}
