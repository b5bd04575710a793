"""The page of rules in Debian's Chromium: readable by keyboard, without scripts, with nothing from elsewhere."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from policies.registry import all_rules
from tests.policies.service.processes import running_service
from tests.webhook.serving import Served, make_pair, write_pair

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
NO_SCRIPTS = {"profile.managed_default_content_settings.javascript": 2}


@contextmanager
def _browser(folder: Path, **preferences: object) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={folder}", "--window-size=1200,900"):
        options.add_argument(flag)
    options.accept_insecure_certs = True  # the certificate is of a throwaway authority
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", preferences)
    driver = Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The real service."""
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder, *make_pair())
    with running_service(folder) as served:
        yield served


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser as people have it."""
    with _browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def page(browser: Chrome, service: Served) -> Chrome:
    """The page, just opened."""
    browser.get(f"https://localhost:{service.port}/")
    return browser


def _press(page: Chrome, *keys: str) -> WebElement:
    ActionChains(page).send_keys(*keys).perform()
    return page.switch_to.active_element


def _press_until(page: Chrome, wanted: str, most: int = 200) -> WebElement:
    """Press Tab until an element that matches a selector has the focus."""
    for _ in range(most):
        focused = _press(page, Keys.TAB)
        if page.execute_script("return arguments[0].matches(arguments[1])", focused, wanted):
            return focused
    raise AssertionError(f"{wanted}: must get the focus within {most} tabs")


def _arrives(page: Chrome, selector: str) -> None:
    """Wait until an element stands at the top of the window: a browser scrolls in its own time."""
    WebDriverWait(page, 10).until(lambda _: abs(_top(page, selector)) < 5)


def _top(page: Chrome, selector: str) -> float:
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    return float(page.execute_script(script, selector))


def test_every_rule_stands_on_the_page(page: Chrome) -> None:
    """With title, reason, who enforces it, and its YAML where the API server gets one."""
    assert page.title == "Rules of Lockstep"
    for rule in all_rules().values():
        article = page.find_element(By.CSS_SELECTOR, f'article[aria-labelledby="{rule.id}"]')
        assert f"{rule.title}." in article.text
        assert f"{rule.why}." in article.text
        assert ("API server and service" in article.text) == (rule.enforced_by == "both")
        assert len(article.find_elements(By.CSS_SELECTOR, f'pre[aria-label="YAML of {rule.id}"]')) == bool(rule.text)
        assert article.find_elements(By.CSS_SELECTOR, "li code")


def test_the_browser_has_nothing_to_complain_about(page: Chrome) -> None:
    """No error, no breach of the content policy, nothing fetched but the style of our own."""
    entries = page.get_log("browser")  # type: ignore[no-untyped-call]
    assert [entry["message"] for entry in entries if "favicon" not in entry["message"]] == []
    fetched = page.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [url.partition("/style")[2] for url in fetched if "favicon" not in url] == [".css"]
    assert page.find_element(By.TAG_NAME, "body").value_of_css_property("max-width") == "960px"


def test_nothing_foreign_can_run(page: Chrome) -> None:
    """The content policy refuses scripts, whoever brings them in."""
    page.execute_script("""
        const script = document.createElement('script');
        script.textContent = 'document.title = "taken over"';
        document.body.append(script);
    """)
    assert page.title == "Rules of Lockstep"


def test_the_first_tab_offers_to_skip_the_contents(page: Chrome) -> None:
    """A keyboard user does not tab through the table."""
    link = _press(page, Keys.TAB)
    assert link.text == "Skip to the rules"
    assert link.is_displayed()
    _press(page, Keys.ENTER)
    _arrives(page, "#rules")


def test_a_rule_is_reached_and_read_by_keys_alone(page: Chrome) -> None:
    """From the contents to a rule, its YAML opened and scrolled, and back."""
    wanted = "podgroup-minimum-positive"
    _press_until(page, f'nav a[href="#{wanted}"]')
    _press(page, Keys.ENTER)
    _arrives(page, f"h2#{wanted}")
    summary = _press_until(page, "summary")
    shown = page.find_element(By.CSS_SELECTOR, f'pre[aria-label="YAML of {wanted}"]')
    assert not shown.is_displayed()
    assert summary.text == f"What the API server is given: {wanted}"
    _press(page, Keys.ENTER)
    assert shown.is_displayed()
    assert _press(page, Keys.TAB) == shown
    before = page.execute_script("return arguments[0].scrollTop", shown)
    _press(page, *[Keys.END] * 2)
    assert "kind: ValidatingAdmissionPolicyBinding" in shown.text
    assert page.execute_script("return arguments[0].scrollTop", shown) >= before
    _press_until(page, 'article a[href="#contents"]')
    _press(page, Keys.ENTER)
    _arrives(page, "h2#contents")


def test_focus_is_seen(page: Chrome) -> None:
    """What has the focus has an outline."""
    link = _press(page, Keys.TAB)
    assert link.value_of_css_property("outline-style") == "solid"


def test_everything_has_a_name(page: Chrome) -> None:
    """What a screen reader meets is named, and headings go down one level at a time."""
    tree = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = ("link", "heading", "table", "article", "navigation", "DisclosureTriangle")
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"] and node["role"]["value"] in roles[:2] and not node["name"]["value"]
    ]
    assert nameless == []
    assert {"main", "navigation", "banner"} <= {node["role"]["value"] for node in tree if "role" in node}
    levels = [int(heading.tag_name[1]) for heading in page.find_elements(By.CSS_SELECTOR, "h1, h2, h3")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert page.find_element(By.TAG_NAME, "html").get_attribute("lang") == "en"


def test_a_narrow_window_needs_no_sideways_scrolling(page: Chrome) -> None:
    """Also at 400 %, which is a window of 320 pixels."""
    size = {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 320
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_reads_the_same_without_scripts(service: Served, tmp_path: Path) -> None:
    """There are none."""
    with _browser(tmp_path / "profile", **NO_SCRIPTS) as driver:
        driver.get(f"https://localhost:{service.port}/")
        headings = [heading.text for heading in driver.find_elements(By.CSS_SELECTOR, "main h2")]
    assert headings == list(all_rules())
