package main

import (
	"fmt"
	"math"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth, plotHeight     = 420, 260
	plotLeft, plotTop         = 60, 40
	plotGap, plotLegendHeight = 90, 60
)

var colours = map[string]string{textbookWay: "#999999", singleWay: "#444444", naiveWay: "#7c3aed", offWay: "#d97706", onWay: "#2563eb"}

// plot draws numbers a second against connections, on one series and on many, as SVG. Connections
// are spaced by their logarithms.
func (r *report) plot() string {
	var b strings.Builder
	width, height := 2*(plotLeft+plotWidth)+plotGap, plotTop+plotHeight+plotLegendHeight+20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i, series := range r.seriesCounts() {
		r.panel(&b, plotLeft+i*(plotLeft+plotWidth+plotGap/2), series)
	}
	for i, way := range []string{textbookWay, singleWay, naiveWay, offWay, onWay} {
		x, y := plotLeft+i*200, height-16
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="14" height="4" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-6, colours[way], x+20, y, way)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (r *report) seriesCounts() (counts []int) {
	for _, row := range r.Rows {
		if len(counts) == 0 || counts[len(counts)-1] != row.Series {
			counts = append(counts, row.Series)
		}
	}
	return counts[:min(2, len(counts))]
}

// panel draws one plot whose left edge is at x.
func (r *report) panel(b *strings.Builder, left, series int) {
	top := 0.0
	for _, row := range r.Rows {
		if row.Series == series {
			top = math.Max(top, row.PerSecond)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(top)))
	if top/step < 3 {
		step /= 2
	}
	top = math.Ceil(top/step) * step
	most := math.Max(2, float64(r.Connections[len(r.Connections)-1]))
	x := func(connections int) float64 {
		return float64(left) + math.Log(float64(connections))/math.Log(most)*plotWidth
	}
	y := func(perSecond float64) float64 { return plotTop + plotHeight - perSecond/top*plotHeight }
	title := "one hot series"
	if series > 1 {
		title = fmt.Sprintf("%d series", series)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">numbers a second, %s</text>`+"\n", left, plotTop-16, title)
	for v := 0.0; v <= top; v += step {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n", left, left+plotWidth, y(v), y(v), left-6, y(v)+4, v)
	}
	for _, connections := range r.Connections {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(connections), plotTop+plotHeight+18, connections)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">connections</text>`+"\n", left+plotWidth/2, plotTop+plotHeight+34)
	for way, colour := range colours {
		var points []string
		for _, connections := range r.Connections {
			if row := r.find(way, series, connections); row != nil {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(connections), y(row.PerSecond)))
			}
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colour)
	}
}
