// Package web is the playground: GraphiQL, bundled into web/dist and embedded. The page asks nothing of any other origin.
//
// Its sources are in web/playground; web/build.sh rebuilds web/dist from them.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// Settings is what the page is told at load time. Whoever can reach the page can read them: a Token belongs in development only.
type Settings struct {
	// Endpoint is the URL of the GraphQL endpoint, relative to the page or of the same origin; the page's CSP refuses any other.
	Endpoint string `json:"endpoint"`
	// Token, where there is one, is pre-filled in the Headers tab as "Authorization: Bearer <token>". The browser does not store it.
	Token string `json:"token"`
	// Tabs are open on the first visit, in this order. A visitor's edits are kept until other tabs are offered, so what changes
	// from start to start (a random idempotency key) does not belong in them.
	Tabs []Tab `json:"tabs"`
}

// Tab is an operation ready to run.
type Tab struct {
	Title     string `json:"title"`     // the name of the operation in Query: GraphiQL takes the title from there
	Query     string `json:"query"`     // a document with one named operation
	Variables string `json:"variables"` // a JSON object, as it should stand in the editor; "" for none
}

// The style attributes are Monaco's; it has no mode without them. Nothing here names another origin.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; " +
	"img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Cache-Control of what carries the hash of its content in its name, and of what does not.
const (
	immutable = "public, max-age=31536000, immutable"
	noStore   = "no-store"
)

// Playground serves the page at "/", its parts below "/assets/", the settings at "/playground.json" and the licences of the bundled
// packages at "/licenses.md". Other paths are 404, methods other than GET and HEAD are 405.
//
// It fails on a tab whose title is not the name of its operation, on variables that are not a JSON object, and on an incomplete build.
func Playground(s Settings) (http.Handler, error) {
	if s.Tabs == nil {
		s.Tabs = []Tab{} // the page iterates over it
	}
	for _, tab := range s.Tabs {
		if err := tab.check(); err != nil {
			return nil, err
		}
	}
	settings, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("playground settings: %w", err)
	}
	files, err := readDist()
	if err != nil {
		return nil, err
	}
	files["/playground.json"] = file{plain: settings, contentType: "application/json", cacheControl: noStore}
	return files, nil
}

// GraphiQL's own rule for the title of a tab: the first line that does not begin with "#" and names an operation.
var operationName = regexp.MustCompile(`(?m)^(?:[^#\n].*)?(?:query|subscription|mutation)\s+([a-zA-Z0-9_]+)`)

func (t Tab) check() error {
	name := operationName.FindStringSubmatch(t.Query)
	if name == nil || name[1] != t.Title {
		return fmt.Errorf("playground tab %q: the title is not the name of its operation", t.Title)
	}
	var object map[string]json.RawMessage
	if t.Variables != "" && json.Unmarshal([]byte(t.Variables), &object) != nil {
		return fmt.Errorf("playground tab %q: the variables are not a JSON object", t.Title)
	}
	return nil
}

// site is what is served, by path.
type site map[string]file

// file has its content in one of two forms.
type file struct {
	plain        []byte
	embedded     string // the name in dist of the gzipped form; "" for none
	contentType  string
	cacheControl string
	etag         string // of the gzipped form, without quotes; "" for none
}

func readDist() (site, error) {
	files := site{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		gzipped, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		served, ok := strings.CutSuffix(strings.TrimPrefix(name, "dist"), ".gz")
		if !ok {
			return fmt.Errorf("%s is not compressed: run web/build.sh", name)
		}
		contentType, ok := contentTypes[path.Ext(served)]
		if !ok {
			return fmt.Errorf("%s has no content type: add it to contentTypes", name)
		}
		f := file{embedded: name, contentType: contentType, cacheControl: noStore}
		if strings.HasPrefix(served, "/assets/") {
			f.cacheControl = immutable
			f.etag = fmt.Sprintf("%x", sha256.Sum256(gzipped))[:32]
		}
		files[served] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("playground files: %w", err)
	}
	index, ok := files["/index.html"]
	if !ok {
		return nil, fmt.Errorf("playground files: no index.html: run web/build.sh")
	}
	delete(files, "/index.html") // the page has one address
	files["/"] = index
	return files, nil
}

// The operating system's table is not asked: it may call JavaScript something that a browser refuses to run under nosniff.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".md":    "text/plain; charset=utf-8",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".woff":  "font/woff",
	".woff2": "font/woff2",
}

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")

	f, ok := s[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	f.serve(w, r)
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	content, etag := f.plain, f.etag
	if f.embedded != "" {
		h.Add("Vary", "Accept-Encoding")
		gzipped, err := dist.ReadFile(f.embedded) // a copy: kept, all of them would be most of what lives in a server
		content = gzipped
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
		} else if err == nil {
			content, err = gunzip(gzipped)
			etag += "-plain" // the two forms are different bytes, and a range of one is no range of the other
		}
		if err != nil {
			http.Error(w, "500 internal server error", http.StatusInternalServerError)
			return
		}
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", f.cacheControl)
	if f.etag != "" {
		h.Set("ETag", strconv.Quote(etag))
	}
	h.Set("Content-Length", strconv.Itoa(len(content))) // ServeContent leaves it out beside a Content-Encoding
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func gunzip(gzipped []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3). A coding named outright outweighs "*", and q=0 refuses. No header means
// that anything goes, but those who send none seldom decompress: they get the plain form, as does a weight that cannot be read.
func acceptsGzip(headers []string) bool {
	others := false
	for _, item := range strings.Split(strings.Join(headers, ","), ",") {
		coding, params, _ := strings.Cut(item, ";")
		accepted := weight(params) > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			others = accepted
		}
	}
	return others
}

// weight is the q of the parameters, 1 where there is none, 0 where it is not a number from 0 to 1.
func weight(params string) float64 {
	for _, param := range strings.Split(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
