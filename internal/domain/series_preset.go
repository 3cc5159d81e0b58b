package domain

import (
	"fmt"
	"slices"
)

// SeriesPreset names a law, and with it what a series that follows it looks like.
type SeriesPreset string

// The laws, each with where it says how invoices are numbered.
const (
	// PresetEU follows Directive 2006/112/EC (the VAT Directive), article 226 (2): an invoice bears
	// a sequential number, based on one or more series, that identifies it uniquely.
	PresetEU SeriesPreset = "EU"
	// PresetFrance follows the Code général des impôts, annexe II, article 242 nonies A, I, 7°: a
	// unique number from a chronological and continuous sequence; separate series where the way the
	// business works justifies them, each used for what it was set up for.
	PresetFrance SeriesPreset = "FRANCE"
	// PresetSpain follows Real Decreto 1619/2012, article 6 (1) a): number and, where there are
	// several, series; the numbers of a series are consecutive; corrective invoices have a series of
	// their own. The invoicing records of Orden HAC/1177/2024 hold 60 characters of it.
	PresetSpain SeriesPreset = "SPAIN"
	// PresetItaly follows DPR 633/1972, article 21 (2) b): a progressive number that identifies the
	// invoice unequivocally; Risoluzione 1/E of 2013 leaves it open whether it restarts each year.
	// The element 2.1.1.4 Numero of a FatturaPA holds 20 characters.
	PresetItaly SeriesPreset = "ITALY"
	// PresetIndia follows the CGST Rules 2017, rule 46 (b): a consecutive serial number of at most
	// sixteen characters, in one or several series, of letters, digits, dash and slash, unique for a
	// financial year, which begins in April.
	PresetIndia SeriesPreset = "INDIA"
	// PresetGermany follows UStG § 14 (4) no. 4 and UStAE 14.5 (10) to (14): a consecutive number
	// of one or several series, of digits, letters or both, given once by the issuer; separate
	// series by time, place or kind are allowed as long as each number is unique.
	PresetGermany SeriesPreset = "GERMANY"
)

// PresetRule is what a preset fills in where nothing else is asked for, and what it insists on:
// MaxLength and AllowedCharacters may be made stricter, not laxer.
type PresetRule struct {
	Preset            SeriesPreset
	Source            string // where the law says so
	Summary           string // what it says, in short
	Format            NumberFormat
	Reset             SeriesReset
	FiscalYearStart   int32
	FiscalYearFixed   bool // the law names the month itself
	TimeZone          string
	MaxLength         int32
	AllowedCharacters SeriesCharacters
	Capacity          int64
	CreditNotesApart  bool
}

// PresetRules are all of them, in the order in which they are offered.
var PresetRules = []*PresetRule{
	{
		Preset: PresetEU, Source: "Directive 2006/112/EC, art. 226 (2)", TimeZone: "UTC",
		Summary: "A sequential number, based on one or more series, that identifies the invoice uniquely.",
		Format:  DefaultNumberFormat, Reset: ResetNever, FiscalYearStart: 1,
		MaxLength: MaxSeriesLength, AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetFrance, Source: "CGI, ann. II, art. 242 nonies A, I, 7°", TimeZone: "Europe/Paris",
		Summary: "A unique number from a chronological and continuous sequence; several series where the business needs them.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1,
		MaxLength: MaxSeriesLength, AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetSpain, Source: "RD 1619/2012, art. 6 (1) a)", TimeZone: "Europe/Madrid",
		Summary: "Consecutive numbers within each series; corrective invoices in a series of their own.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1, CreditNotesApart: true,
		MaxLength: 60, AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetItaly, Source: "DPR 633/1972, art. 21 (2) b)", TimeZone: "Europe/Rome",
		Summary: "A progressive number that identifies the invoice unequivocally; an electronic invoice holds 20 characters of it.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1,
		MaxLength: 20, AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetIndia, Source: "CGST Rules 2017, rule 46 (b)", TimeZone: "Asia/Kolkata",
		Summary: "A consecutive serial number of at most 16 characters: letters, digits, - and /; unique for a financial year, April to March.",
		Format:  "{CODE}/{FY}/{N:4}", Reset: ResetFiscalYearly, FiscalYearStart: 4, FiscalYearFixed: true,
		MaxLength: 16, AllowedCharacters: CharactersAlphanumericDashSlash, Capacity: 9_999, // INV/2026-27/9999 is 16
	},
	{
		Preset: PresetGermany, Source: "UStG § 14 (4) no. 4; UStAE 14.5 (10) to (14)", TimeZone: "Europe/Berlin",
		Summary: "A consecutive number, given once, of one or several series, with digits, letters or both.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1,
		MaxLength: MaxSeriesLength, AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
}

// Rule is what the preset says.
func (p SeriesPreset) Rule() *PresetRule {
	return PresetRules[slices.IndexFunc(PresetRules, func(r *PresetRule) bool { return r.Preset == p })]
}

// PresetViolatedError refuses input that the law of the chosen preset does not allow.
type PresetViolatedError struct {
	Refusal
	Preset SeriesPreset
	Source string
}

// admits refuses a rule that is laxer than the law.
func (p *PresetRule) admits(r SeriesRule) error {
	switch {
	case r.MaxLength > p.MaxLength:
		return p.violated("maxLength", "a number has at most %d characters", p.MaxLength)
	case !r.AllowedCharacters.within(p.AllowedCharacters):
		return p.violated("allowedCharacters", "a number consists of %s", characterSets[p.AllowedCharacters].words)
	case p.FiscalYearFixed && r.FiscalYearStart != p.FiscalYearStart:
		return p.violated("fiscalYearStartMonth", "the financial year starts in month %d", p.FiscalYearStart)
	}
	return nil
}

func (p *PresetRule) violated(field, format string, args ...any) error {
	return &PresetViolatedError{
		Refusal: Refusal{
			Code: CodePresetViolated, Path: Input(field),
			Message: fmt.Sprintf("%s: %s", p.Source, fmt.Sprintf(format, args...)),
		},
		Preset: p.Preset, Source: p.Source,
	}
}

// within says whether a set of characters is part of another.
func (c SeriesCharacters) within(other SeriesCharacters) bool {
	for i := range len(characterSets[c].set) {
		if !charset(characterSets[c].set[i : i+1]).meets(charset(characterSets[other].set)) {
			return false
		}
	}
	return true
}
