package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/graph"
	"countersign/graph/model"
	"countersign/internal/auth"
	"countersign/internal/command"
	"countersign/internal/config"
	"countersign/internal/domain"
	"countersign/internal/httpserver"
	"countersign/internal/invoicing"
	"countersign/sqlc"
)

// textbook is the transaction as textbooks have it: lock, update, insert, between BEGIN and COMMIT,
// a round trip each, on the product's tables. pgbench runs it, and the textbook server.
var textbook = [4]string{`
SELECT next_number, period_start, last_issue_date, number_prefix
FROM series_counters WHERE tenant_id = @tenant_id AND series_id = @series_id FOR UPDATE`, `
UPDATE series_counters SET next_number = next_number + 1 WHERE tenant_id = @tenant_id AND series_id = @series_id`, `
INSERT INTO invoices (tenant_id, id, customer_id, kind, status, series_id, period_start, sequence, number, issue_date,
	currency, total_minor, rounding_adjustment, seller_revision, buyer_revision, operation_id, operation_fingerprint,
	created_by, created_at, updated_at)
VALUES (@tenant_id, @id, @customer_id, 'DIRECT', 'PENDING', @series_id, @period_start, @number::bigint, @prefix::text || lpad(@number::bigint::text, greatest(5, length(@number::bigint::text)), '0'), @day,
	@currency, @amount, 0, 1, 1, @id, @fingerprint, @by, now(), now())`, `
INSERT INTO invoice_lines (tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount)
VALUES (@tenant_id, @id, 1, @description, @quantity, @amount, @amount)`}

// textbookServer is a server whose allocateInvoice is the textbook transaction: the product's own
// HTTP and GraphQL and its look-up of the token before it, and nothing of what else the product
// promises. What it costs to allocate over the same HTTP path is measured on it.
func textbookServer(ctx context.Context) error {
	command.CollectSeldom()
	c, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	logger := command.NewLogger(c, os.Stderr)
	app, err := command.Connect(ctx, &command.World{Config: c, Stdout: os.Stdout, Stderr: os.Stderr, Logger: logger}, true)
	if err != nil {
		return err
	}
	defer func() { _ = app.Close() }()
	listener, err := net.Listen("tcp", c.ListenAddr)
	if err != nil {
		return err
	}
	server := &httpserver.Server{
		GraphQL: graph.NewHandler(graph.Options{
			Resolver: textbookResolver{
				&graph.Resolver{DB: app.DB, Tokens: app.Tokens, Invoicing: app.Invoicing, Ordering: app.Ordering, Metering: app.Metering}, app.Pool,
			},
			Authenticate: app.Tokens.Authenticate, QueryTimeout: c.QueryTimeout, Logger: logger, Observe: app.Metrics.Field,
		}),
		Observe: app.Metrics.Request, Ready: func(context.Context) error { return nil },
		Logger: logger, Timeout: time.Second,
	}
	fmt.Printf("serves http://%s/graphql\nready\n", listener.Addr())
	return server.Serve(ctx, listener)
}

// textbookResolver is the product's, but for the allocation.
type textbookResolver struct {
	graph.ResolverRoot
	pool *pgxpool.Pool
}

// Mutation is the product's, but for the allocation.
func (r textbookResolver) Mutation() graph.MutationResolver {
	return textbookMutation{r.ResolverRoot.Mutation(), r.pool}
}

type textbookMutation struct {
	graph.MutationResolver
	pool *pgxpool.Pool
}

// AllocateInvoice numbers an invoice of one line by the textbook transaction.
func (m textbookMutation) AllocateInvoice(ctx context.Context, in invoicing.AllocateInvoiceInput) (*model.AllocateInvoicePayload, error) {
	caller, _ := auth.From(ctx)
	made := &sqlc.Invoice{ID: domain.NewID[domain.InvoiceID]()}
	line := in.Lines[0]
	values := pgx.NamedArgs{
		"tenant_id": caller.TenantID, "series_id": in.SeriesID, "id": made.ID, "customer_id": in.CustomerID, "currency": in.Currency,
		"description": line.Description, "quantity": line.Quantity, "amount": int64(line.UnitAmountMinor) * int64(line.Quantity),
		"fingerprint": []byte{1}, "by": caller.By(),
	}
	err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var number int64
		var period, day domain.Date
		var prefix string
		if err := tx.QueryRow(ctx, textbook[0], values).Scan(&number, &period, &day, &prefix); err != nil {
			return err
		}
		text := fmt.Sprintf("%s%05d", prefix, number)
		made.Number = &text
		values["number"], values["period_start"], values["day"], values["prefix"] = number, period, day, prefix
		for _, statement := range textbook[1:] {
			if _, err := tx.Exec(ctx, statement, values); err != nil {
				return err
			}
		}
		return nil
	})
	return &model.AllocateInvoicePayload{Invoice: made, UserErrors: []domain.UserError{}}, err
}
