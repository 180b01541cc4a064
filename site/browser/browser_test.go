// Package browser tests the built site in a real browser. "make site-browser" builds the site and
// runs these tests; GOPF_SITE names the folder of the site, and GOPF_BROWSER the executable of
// Chromium or Chrome.
package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// site serves the built site and returns its address and its pages.
func site(t *testing.T) (address string, pages []string) {
	t.Helper()
	folder := os.Getenv("GOPF_SITE")
	files, err := filepath.Glob(filepath.Join(folder, "dev", "*.html"))
	if folder == "" || err != nil || len(files) < 60 {
		t.Fatalf("there is no site in GOPF_SITE=%q; run make site-browser", folder)
	}
	for _, f := range files {
		pages = append(pages, filepath.Base(f))
	}
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	return server.URL + "/dev/", pages
}

// open starts a browser. It fails the test for each error in the console, and for each
// request to another server.
func open(t *testing.T, address string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(os.Getenv("GOPF_BROWSER")), chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			t.Errorf("console: %s %s", e.Entry.Text, e.Entry.URL)
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; !strings.HasPrefix(url, strings.TrimSuffix(strings.TrimSuffix(address, "dev/"), "debug/gopf/")) && !strings.HasPrefix(url, "data:") && url != "about:blank" {
				t.Errorf("requested from another server: %s", url)
			}
		}
	})
	if err := chromedp.Run(ctx, network.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// lowContrast returns the texts of a page with less contrast than WCAG 2 asks for (AA).
const lowContrast = `(() => {
  const rgb = c => (c.match(/[\d.]+/g) || []).map(Number);
  const lum = ([r, g, b]) => { const f = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b) };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c } return [255, 255, 255] };
  const found = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg") || !e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    if (style.visibility === "hidden") continue;
    const a = lum(rgb(style.color)), b = lum(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(e.tagName + "." + e.className + " " + ratio.toFixed(1) + " " + e.textContent.trim().slice(0, 30));
  }
  return [...found].slice(0, 5);
})()`

func TestEveryPageRendersInBothThemesAndOnPhones(t *testing.T) {
	address, pages := site(t)
	ctx := open(t, address)
	for _, name := range pages {
		var title string
		var width, text int
		var light, dark []string
		err := chromedp.Run(ctx,
			emulation.SetDeviceMetricsOverride(390, 800, 1, true),
			chromedp.Navigate(address+name),
			chromedp.Title(&title),
			chromedp.Evaluate(`document.documentElement.scrollWidth`, &width),
			chromedp.Evaluate(`document.querySelector("article").innerText.length`, &text),
			chromedp.Evaluate(`document.documentElement.dataset.theme = "light"`, nil),
			chromedp.Evaluate(lowContrast, &light),
			chromedp.Evaluate(`document.documentElement.dataset.theme = "dark"`, nil),
			chromedp.Evaluate(lowContrast, &dark),
		)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if title == "" || text < 100 {
			t.Errorf("%s has the title %q and %d characters", name, title, text)
		}
		if width > 390 {
			t.Errorf("%s is %d pixels wide on a phone", name, width)
		}
		if len(light)+len(dark) > 0 {
			t.Errorf("%s: low contrast: light %q, dark %q", name, light, dark)
		}
	}
}

func TestSearchInTheBrowser(t *testing.T) {
	address, _ := site(t)
	ctx := open(t, address)
	raw, err := os.ReadFile("../manual/testdata/questions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Run(ctx, chromedp.Navigate(address+"index.html"), chromedp.Focus("#query"), chromedp.Poll(`typeof gopfIndex !== "undefined"`, nil)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		question, page, found := strings.Cut(strings.TrimSpace(line), " | ")
		if !found {
			continue
		}
		var first string
		err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`(() => {
			const q = document.getElementById("query"); q.value = %q; q.dispatchEvent(new Event("input"));
			return document.querySelector("#found a").getAttribute("href").split(".")[0] })()`, question), &first))
		if err != nil || first != page {
			t.Errorf("%q finds %s first instead of %s, %v", question, first, page, err)
		}
	}
}

func TestButtonsWork(t *testing.T) {
	address, _ := site(t)
	ctx := open(t, address)
	var copies, blocks int
	var before, after, kept, opened, version string
	err := chromedp.Run(ctx,
		chromedp.Navigate(address+"errors.html"),
		chromedp.Evaluate(`document.querySelectorAll(".copy").length`, &copies),
		chromedp.Evaluate(`document.querySelectorAll("article pre").length`, &blocks),
		chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &before),
		chromedp.Click("#theme"),
		chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &after),
		chromedp.Evaluate(`document.getElementById("versions").value`, &version),
		chromedp.Navigate(address+"daemons.html"),
		chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &kept),
		emulation.SetDeviceMetricsOverride(390, 800, 1, true),
		chromedp.Click("#menu"),
		chromedp.Evaluate(`getComputedStyle(document.getElementById("nav")).display`, &opened),
	)
	if err != nil {
		t.Fatal(err)
	}
	if copies == 0 || copies != blocks {
		t.Errorf("%d of %d blocks of code have a button", copies, blocks)
	}
	if before == after || kept != after {
		t.Errorf("the background was %s, %s after the click, and %s on the next page", before, after, kept)
	}
	if opened != "block" || version != "dev" {
		t.Errorf("the menu is %s, the version is %q", opened, version)
	}
}
