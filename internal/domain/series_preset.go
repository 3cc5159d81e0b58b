package domain

import (
	"fmt"
	"slices"
)

// SeriesPreset names a law, and with it what a series that follows it looks like.
type SeriesPreset string

// The laws, each with where it says how invoices are numbered, and what bounds a number's length: mostly
// not the law, but a format that invoices are filed in. What was not confirmed is said.
const (
	// PresetEU follows Directive 2006/112/EC (the VAT Directive), article 226 (2): an invoice bears
	// a sequential number, based on one or more series, that identifies it uniquely. It bounds
	// neither length nor characters.
	PresetEU SeriesPreset = "EU"
	// PresetFrance follows the Code général des impôts, annexe II, article 242 nonies A, I, 7°: a
	// unique number from a chronological and continuous sequence; separate series where the way the
	// business works justifies them, each used for what it was set up for. It sets no length. Whether
	// the formats of electronic invoicing set one was not confirmed.
	PresetFrance SeriesPreset = "FRANCE"
	// PresetSpain follows Real Decreto 1619/2012, article 6 (1) a): number and, where there are
	// several, series; the numbers of a series are consecutive; corrective invoices have a series of
	// their own. It sets no length. The 60 characters are those of NumSerieFactura, series and number
	// together, in the tax agency's schema for the invoicing records of Orden HAC/1177/2024
	// (SuministroInformacion.xsd, TextoIDFacturaType); that the order itself says so was not
	// confirmed. Facturae 3.2 (InvoiceSeriesCode, InvoiceNumber) and TicketBAI (SerieFactura,
	// NumFactura) hold series and number apart, each of at most 20: who files a number whole in one of
	// them asks for a maximum length of 20.
	PresetSpain SeriesPreset = "SPAIN"
	// PresetItaly follows DPR 633/1972, article 21 (2) b): a progressive number that identifies the
	// invoice unequivocally; Risoluzione 1/E of 10 January 2013 lets it go on for ever or start at 1
	// each year. Neither sets a length. The 20 characters, of Basic Latin, are those of the element
	// 2.1.1.4 Numero of a FatturaPA (schema 1.2, 1.2.2 of the file: String20Type).
	PresetItaly SeriesPreset = "ITALY"
	// PresetIndia follows the CGST Rules 2017, rule 46 (b): a consecutive serial number of at most
	// sixteen characters, in one or several series, of letters, digits, dash and slash, unique for a
	// financial year, which begins in April. Here the law itself sets length and characters.
	PresetIndia SeriesPreset = "INDIA"
	// PresetGermany follows UStG § 14 (4) no. 4 and UStAE 14.5 (10) and (11): a consecutive number
	// of one or several series, of digits, letters or both, given once by the issuer; separate
	// series by time, place or organisation are allowed as long as each number is unique. No length
	// is set, and gaps are not forbidden. Whether dashes and slashes are was not confirmed.
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
	MaxLengthSource   *string // where MaxLength comes from; nil: nothing bounds it but this server
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
		Summary: "Consecutive numbers within each series; corrective invoices in a series of their own; an invoicing record holds 60 characters of it.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1, CreditNotesApart: true,
		MaxLength: 60, MaxLengthSource: new("invoicing records of Orden HAC/1177/2024, NumSerieFactura"),
		AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetItaly, Source: "DPR 633/1972, art. 21 (2) b)", TimeZone: "Europe/Rome",
		Summary: "A progressive number that identifies the invoice unequivocally; an electronic invoice holds 20 characters of it.",
		Format:  ResetYearly.DefaultFormat(), Reset: ResetYearly, FiscalYearStart: 1,
		MaxLength: 20, MaxLengthSource: new("FatturaPA 1.2, element 2.1.1.4 Numero"),
		AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	},
	{
		Preset: PresetIndia, Source: "CGST Rules 2017, rule 46 (b)", TimeZone: "Asia/Kolkata",
		Summary: "A consecutive serial number of at most 16 characters: letters, digits, - and /; unique for a financial year, April to March.",
		Format:  "{CODE}/{FY}/{N:4}", Reset: ResetFiscalYearly, FiscalYearStart: 4, FiscalYearFixed: true,
		MaxLength: 16, MaxLengthSource: new("CGST Rules 2017, rule 46 (b)"),
		AllowedCharacters: CharactersAlphanumericDashSlash, Capacity: 9_999, // INV/2026-27/9999 is 16
	},
	{
		Preset: PresetGermany, Source: "UStG § 14 (4) no. 4; UStAE 14.5 (10), (11)", TimeZone: "Europe/Berlin",
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
	case p.MaxLengthSource != nil && r.MaxLength > p.MaxLength:
		return p.violated(*p.MaxLengthSource, "maxLength", "a number has at most %d characters", p.MaxLength)
	case !r.AllowedCharacters.within(p.AllowedCharacters):
		return p.violated(p.Source, "allowedCharacters", "a number consists of %s", characterSets[p.AllowedCharacters].words)
	case p.FiscalYearFixed && r.FiscalYearStart != p.FiscalYearStart:
		return p.violated(p.Source, "fiscalYearStartMonth", "the financial year starts in month %d", p.FiscalYearStart)
	}
	return nil
}

func (p *PresetRule) violated(source, field, format string, args ...any) error {
	return &PresetViolatedError{
		Refusal: Refusal{
			Code: CodePresetViolated, Path: Input(field),
			Message: fmt.Sprintf("%s: %s", source, fmt.Sprintf(format, args...)),
		},
		Preset: p.Preset, Source: source,
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
