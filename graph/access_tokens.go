package graph

import (
	"context"

	"countersign/graph/model"
	"countersign/internal/domain"
	"countersign/sqlc"
)

var accessTokenKeys = idKeys[domain.TokenID]("accessToken")

func (r *Resolver) accessTokens(ctx context.Context, w window) (*model.AccessTokenConnection, error) {
	req, err := request(accessTokenKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Tokens.List(ctx, caller(ctx), req)
	rows, info := edges(ctx, accessTokenKeys, w, page, func(t *sqlc.AccessToken) domain.TokenID { return t.ID },
		func(cursor string, t *sqlc.AccessToken) *model.AccessTokenEdge {
			return &model.AccessTokenEdge{Cursor: cursor, Node: t}
		})
	return &model.AccessTokenConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}

// customersOf answers each token at its place with the customer that it acts for; nil where it acts
// for none.
func (r *Resolver) customersOf(ctx context.Context, tokens []*sqlc.AccessToken) ([]*sqlc.Customer, error) {
	var ids []domain.CustomerID
	for _, t := range tokens {
		if t.CustomerID != nil {
			ids = append(ids, *t.CustomerID)
		}
	}
	out := make([]*sqlc.Customer, len(tokens))
	if len(ids) == 0 {
		return out, nil
	}
	found, err := r.Invoicing.CustomersByID(ctx, caller(ctx), ids)
	if err != nil {
		return nil, err
	}
	for i, t := range tokens {
		if t.CustomerID != nil {
			out[i], found = found[0], found[1:]
		}
	}
	return out, nil
}
