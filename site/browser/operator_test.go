package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// operatorPage starts the page of an invented operator with 100,000 objects, and returns its
// address. "make page-browser" sets GOPF_PAGE to the program.
func operatorPage(t *testing.T) (address string) {
	t.Helper()
	program := os.Getenv("GOPF_PAGE")
	if program == "" {
		t.Fatal("GOPF_PAGE names no program; run make page-browser")
	}
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		_, err = fmt.Fscanln(out, &address)
	}
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// inTime ends the browser after two minutes: a place that is never drawn is a failure.
func inTime(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// at shows a place of the page, and waits until it is drawn.
func at(address, place, wait string) chromedp.Tasks {
	return chromedp.Tasks{chromedp.Navigate("about:blank"), chromedp.Navigate(address + "#/" + place), chromedp.WaitVisible(wait)}
}

// picture stores a screenshot in the folder GOPF_PICTURES, if it is set.
func picture(name string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		folder := os.Getenv("GOPF_PICTURES")
		if folder == "" {
			return nil
		}
		var png []byte
		if err := chromedp.FullScreenshot(&png, 100).Do(ctx); err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600)
	})
}

// places are the views of the page, with an element that each of them has.
var places = map[string]string{
	"": "svg.plot path.l2", "objects": "#next", "handlers": "main td", "requests": "main td",
	"object/databases.example.com/team-03/db-008123": "svg.lane rect",
}

func TestTheOperatorsPageRendersInBothThemesAndOnPhones(t *testing.T) {
	address := operatorPage(t)
	ctx := inTime(t, open(t, address))
	for place, element := range places {
		for _, width := range []int64{1200, 390} {
			for _, theme := range []string{"light", "dark"} {
				var wide int64
				var low []string
				var text string
				name := fmt.Sprintf("%s-%d-%s", strings.ReplaceAll("page-"+place, "/", "-"), width, theme)
				err := chromedp.Run(ctx,
					emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
					at(address, place, element),
					chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide),
					chromedp.Evaluate(lowContrast, &low),
					chromedp.Evaluate(`document.body.innerText`, &text),
					picture(name),
				)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if wide > width {
					t.Errorf("%s is %d pixels wide", name, wide)
				}
				if strings.Contains(text, "[object") || strings.Contains(text, "undefined") || strings.Contains(text, "NaN") {
					t.Errorf("%s: %s", name, text)
				}
				if len(low) > 0 {
					t.Errorf("%s: low contrast: %q", name, low)
				}
			}
		}
	}
}

func TestObjectsAreSearchedInTheBrowser(t *testing.T) {
	address := operatorPage(t)
	ctx := inTime(t, open(t, address))
	var total, none, first, second, summary string
	var rows, nodes int
	err := chromedp.Run(ctx,
		at(address, "objects", "#next"),
		chromedp.Text("#total", &total),
		chromedp.Evaluate(`document.querySelectorAll("tbody tr").length`, &rows),
		chromedp.Evaluate(`document.querySelectorAll("*").length`, &nodes),
		chromedp.Text("tbody tr:first-child td:nth-child(2)", &first),
		chromedp.Click("#next"),
		chromedp.Poll(`document.querySelector("tbody a").textContent === "db-000050"`, nil),
		chromedp.Text("tbody tr:first-child td:nth-child(2)", &second),
		chromedp.SendKeys("#search", "db-099999"),
		chromedp.Poll(`document.getElementById("total").textContent === "1 object"`, nil),
		chromedp.Evaluate(`document.activeElement.id`, &none),
		chromedp.Click("tbody a"),
		chromedp.WaitVisible("#summary"),
		chromedp.Text("#summary", &summary),
	)
	if err != nil {
		t.Fatal(err)
	}
	if total != "100,000 objects" || rows != 50 || nodes > 1000 {
		t.Errorf("%s, %d rows, %d elements", total, rows, nodes)
	}
	if first != "db-000000" || second != "db-000050" || none != "search" || !strings.Contains(summary, "team-39/db-099999: update: waits for backup") {
		t.Errorf("first %q, second %q, focus on %q, summary %q", first, second, none, summary)
	}
}

func TestTextsAreNoHTMLAndSecretsAreHidden(t *testing.T) {
	address := operatorPage(t)
	ctx := inTime(t, open(t, address))
	var object, secret string
	var images int
	err := chromedp.Run(ctx,
		at(address, "object/databases.example.com/team-03/db-008123", "#summary"),
		chromedp.Text("main", &object),
		chromedp.Evaluate(`document.images.length`, &images),
		at(address, "object/secrets/team-03/password", "#summary"),
		chromedp.Text("main", &secret),
	)
	if err != nil {
		t.Fatal(err)
	}
	if images != 0 || !strings.Contains(object, "<img src=x onerror=alert(1)>") {
		t.Errorf("%d images, and the text is %s", images, object)
	}
	if !strings.Contains(secret, "data.password") || strings.Contains(secret, "hunter") {
		t.Errorf("the page of a Secret: %s", secret)
	}
}

// TestTheOperatorsPagePaintsQuickly measures the best of several loads, because the machine may be
// busy.
func TestTheOperatorsPagePaintsQuickly(t *testing.T) {
	address := operatorPage(t)
	ctx := inTime(t, open(t, address))
	best := 1e9
	for range 10 {
		var paint float64
		err := chromedp.Run(ctx, at(address, "objects", "#next"),
			chromedp.Poll(`performance.getEntriesByName("first-contentful-paint").length > 0`, nil),
			chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint))
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, paint)
	}
	t.Logf("first paint after %.0f ms", best)
	if best > 300 {
		t.Errorf("first paint after %.0f ms", best)
	}
}
