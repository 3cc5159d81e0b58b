package invoicing_test

import (
	"context"
	"fmt"
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	s := invoicing.New(txn.New(d.Pool, txn.Settings{}))
	ten, created, err := s.CreateTenant(context.Background(), "demo", "Demo")
	if err != nil || !created {
		t.Fatal(err)
	}
	ten2, created, err := s.CreateTenant(context.Background(), "demo", "Demo")
	if err != nil || created || ten2.ID != ten.ID {
		t.Fatal(err, created)
	}
	c := auth.Caller{TenantID: ten.ID, Role: domain.RoleAdmin}
	cus, err := s.CreateCustomer(t.Context(), c, invoicing.CreateCustomerInput{Name: "A", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	ser, err := s.CreateSeries(t.Context(), c, invoicing.CreateInvoiceSeriesInput{Code: "X"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		out, err := s.Allocate(t.Context(), c, invoicing.AllocateInvoiceInput{SeriesID: ser.Value.ID, CustomerID: cus.Value.ID, Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "x", Quantity: 2, UnitAmountMinor: 150}}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(*out.Value.Number, out.Value.IssueDate, out.Value.TotalMinor)
	}
}
