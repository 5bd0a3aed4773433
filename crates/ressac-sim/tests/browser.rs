//! The page in a browser: charts with data, and no script error. Skipped where there is no
//! Chromium, unless `CI` is set: there it must be.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use ressac_sim::{Phases, StudyOptions, built_in, page, plots, study};

/// Looks at the page from within, once it has loaded, and writes what it finds into the title.
const LOOK: &str = r#"<script>
window.faults = [];
window.addEventListener("error", event => window.faults.push(String(event.message)));
console.error = message => window.faults.push(String(message));
window.addEventListener("load", () => setTimeout(() => {
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const filled = plots.filter(plot => plot.data.some(trace =>
    (trace.z ?? trace.x ?? []).length > 0 && plot.querySelector(".scatterlayer .trace, .heatmaplayer image, .heatmaplayer path")));
  const report = document.createElement("pre");
  report.id = "found";
  report.textContent = "FOUND " + plots.length + " FILLED " + filled.length +
    " FAULTS " + window.faults.length + " " + window.faults.join(" | ") + " END";
  document.body.append(report);
}, 500));
</script>"#;

fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

fn look(browser: &Path, html: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(
        &file,
        html.replacen("<style>", &format!("{LOOK}<style>"), 1),
    )
    .unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let from = dom
        .rfind("FOUND ")
        .unwrap_or_else(|| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)));
    dom[from..].split(" END").next().unwrap_or("").to_owned()
}

#[test]
fn every_page_has_its_charts_with_data_and_no_script_error() {
    let Some(browser) = chromium() else {
        assert!(std::env::var_os("CI").is_none(), "CI needs Chromium");
        println!("no Chromium: skipped");
        return;
    };
    for name in ["edi-50", "outage", "layers", "aws-occ", "metastable"] {
        let scenario = built_in(name).unwrap();
        let options = StudyOptions {
            seeds: Some(1),
            policies: if name == "metastable" {
                vec![ressac_config::Config::policy_from("durable").unwrap()]
            } else {
                Vec::new()
            },
            ..StudyOptions::default()
        };
        let found = study(&scenario, &options, &|_, _| (), &AtomicBool::new(false));
        let found = found.unwrap().unwrap();
        let phases = [Phases {
            label: "two by two".to_owned(),
            loads: vec![0.2, 0.4],
            outages: vec![1.0, 5.0],
            recover_seconds: vec![vec![Some(1.0), Some(2.0)], vec![Some(9.0), None]],
            predicted: Some(0.25),
        }];
        let figures = plots(&found, &phases);
        let html = page(name, &found.about, "seed 1", &figures);
        let expected = figures.len();
        assert_eq!(
            look(&browser, &html),
            format!("FOUND {expected} FILLED {expected} FAULTS 0 "),
            "{name}"
        );
    }
}
