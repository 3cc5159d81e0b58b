package domain

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// amounts are of every size, and often at the edges of 64 and 32 bits.
func amounts() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-10, 10),
		rapid.Custom(func(t *rapid.T) int64 {
			edge := rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, math.MaxInt64 / 2, math.MinInt64 / 2, 1 << 53, math.MaxInt32, 3037000499}).Draw(t, "edge")
			return edge + rapid.Int64Range(-3, 3).Draw(t, "off") // past the edge it wraps: the other edge
		}),
	)
}

// What TestAmountsAtTheEdges says holds for amounts of every size.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkExact(t, amounts().Draw(t, "a"), amounts().Draw(t, "b")) })
}

// A total is the exact sum of its lines, or is refused.
func TestTotalsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []InvoiceLineInput
		want, fits := new(big.Int), true
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			l := InvoiceLineInput{
				Description: "Chess set", Quantity: rapid.OneOf(rapid.Int32Range(1, 3), rapid.Int32Range(1, math.MaxInt32)).Draw(t, "quantity"),
				UnitAmountMinor: Cents(amounts().Draw(t, "amount")),
			}
			amount := new(big.Int).Mul(big.NewInt(int64(l.Quantity)), big.NewInt(int64(l.UnitAmountMinor)))
			want.Add(want, amount)
			fits = fits && amount.IsInt64() && want.IsInt64()
			lines = append(lines, l)
		}
		sum, err := TotalOfLines(lines)
		total := sum.Total
		switch {
		case !fits && (err == nil || total != 0):
			t.Errorf("%v sum to %d, want a refusal: a step has more than 64 bits", lines, total)
		case fits && want.Sign() < 0 && code(err) != CodeNegativeTotal:
			t.Errorf("%v sum to %d (%v), want NEGATIVE_TOTAL", lines, total, err)
		case fits && want.Sign() >= 0 && (err != nil || int64(total) != want.Int64()):
			t.Errorf("%v sum to %d (%v), want %s", lines, total, err, want)
		}
	})
}
