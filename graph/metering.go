package graph

import (
	"context"

	"countersign/graph/model"
	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/paging"
	"countersign/sqlc"
)

var (
	apiKeyKeys     = idKeys[domain.APIKeyID]("apiKey")
	settlementKeys = idKeys[domain.SettlementID]("settlement")
)

// each maps a slice.
func each[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, t := range in {
		out[i] = f(t)
	}
	return out
}

// receipts are read once for all that is told of them.
func (r *Resolver) receipts(ctx context.Context, objs []*sqlc.Settlement) ([][]*sqlc.SettlementAttempt, error) {
	return togetherManyAs(ctx, "receipt", objs, func(ctx context.Context, objs []*sqlc.Settlement) ([][]*sqlc.SettlementAttempt, error) {
		return r.Metering.ReceiptsOf(ctx, caller(ctx), objs)
	})
}

func (r *Resolver) apiKeys(ctx context.Context, f *metering.APIKeyFilter, w window) (*model.APIKeyConnection, error) {
	req, err := request(apiKeyKeys, w)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &metering.APIKeyFilter{}
	}
	page, err := r.Metering.ListKeys(ctx, caller(ctx), *f, req)
	return apiKeyConnection(ctx, w, page), err
}

// apiKeysOf are the customers' lists, in order of creation.
func (r *Resolver) apiKeysOf(ctx context.Context, customers []*sqlc.Customer, w window) ([]*model.APIKeyConnection, error) {
	return pagesOf(ctx, customers, apiKeyKeys, w, r.Metering.KeysOf, func(page paging.Page[*sqlc.APIKey]) *model.APIKeyConnection {
		return apiKeyConnection(ctx, w, page)
	})
}

func apiKeyConnection(ctx context.Context, w window, page paging.Page[*sqlc.APIKey]) *model.APIKeyConnection {
	rows, info := edges(ctx, apiKeyKeys, w, page, func(k *sqlc.APIKey) domain.APIKeyID { return k.ID },
		func(cursor string, k *sqlc.APIKey) *model.APIKeyEdge {
			return &model.APIKeyEdge{Cursor: cursor, Node: k}
		})
	return &model.APIKeyConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
}

func (r *Resolver) settlements(ctx context.Context, f *metering.SettlementFilter, w window) (*model.UsageSettlementConnection, error) {
	req, err := request(settlementKeys, w)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &metering.SettlementFilter{}
	}
	page, err := r.Metering.ListSettlements(ctx, caller(ctx), *f, req)
	return settlementConnection(ctx, w, page), err
}

// settlementsOf are the customers' lists, in order of creation.
func (r *Resolver) settlementsOf(ctx context.Context, customers []*sqlc.Customer, w window) ([]*model.UsageSettlementConnection, error) {
	return pagesOf(ctx, customers, settlementKeys, w, r.Metering.SettlementsOf, func(page paging.Page[*sqlc.Settlement]) *model.UsageSettlementConnection {
		return settlementConnection(ctx, w, page)
	})
}

func settlementConnection(ctx context.Context, w window, page paging.Page[*sqlc.Settlement]) *model.UsageSettlementConnection {
	rows, info := edges(ctx, settlementKeys, w, page, func(s *sqlc.Settlement) domain.SettlementID { return s.ID },
		func(cursor string, s *sqlc.Settlement) *model.UsageSettlementEdge {
			return &model.UsageSettlementEdge{Cursor: cursor, Node: s}
		})
	return &model.UsageSettlementConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
}
