// A lesson's page: the contents list marks the section that is being read, and code folds cell by cell or all at once.

const OPEN = "tfviz: all code is open"; // in localStorage

/** Mark in the contents list the last heading that stands in the upper quarter of the window or above it. */
function markSections() {
  const list = document.querySelector(".contents");
  if (!list) return;
  /** @type {[HTMLAnchorElement, HTMLElement][]} */
  const sections = [];
  for (const link of list.querySelectorAll("a")) {
    const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (heading) sections.push([link, heading]);
  }
  const mark = () => {
    const above = sections.filter(([, heading]) => heading.getBoundingClientRect().top < innerHeight / 4);
    const current = above.at(-1)?.[0];
    for (const [link] of sections) link.removeAttribute("aria-current");
    current?.setAttribute("aria-current", "true");
    if (current) list.scrollTop = current.offsetTop - list.clientHeight / 2; // at once: nothing glides
  };
  // What is above the window counts as seen: so a jump over a heading is noticed, too.
  const observer = new IntersectionObserver(mark, { rootMargin: "1000000px 0px -75% 0px" });
  for (const [, heading] of sections) observer.observe(heading);
}

/** Return whether the reader wants all code open, as far as the browser remembers. @returns {boolean | null} */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(OPEN) ?? "null");
  } catch {
    return null;
  }
}

/** @param {boolean} open */
function remember(open) {
  try {
    localStorage.setItem(OPEN, String(open));
  } catch {
    // this page may not store anything
  }
}

/** Let the button open all code, or fold it if all is open. What is printed is open. */
function foldCode() {
  const button = /** @type {HTMLButtonElement | null} */ (document.querySelector(".fold-all"));
  /** @type {HTMLDetailsElement[]} */
  const cells = [...document.querySelectorAll(/** @type {"details"} */ ("details.code"))];
  if (!button || !cells.length) return;
  const allOpen = () => cells.every((cell) => cell.open);
  const name = () => {
    button.textContent = allOpen() ? "Hide all code" : "Show all code";
  };
  /** @param {boolean} open */
  const set = (open) => {
    for (const cell of cells) cell.open = open;
    name();
  };
  button.addEventListener("click", () => {
    const open = !allOpen();
    set(open);
    remember(open);
  });
  for (const cell of cells) cell.addEventListener("toggle", name);
  addEventListener("beforeprint", () => set(true));
  const open = remembered();
  if (open !== null) set(open);
  name();
  button.hidden = false;
}

/** Let keys scroll what is wider than the page; not every browser does so by itself. */
function focusWideText() {
  for (const text of document.querySelectorAll("main pre, .formula")) {
    if (text instanceof HTMLElement && text.scrollWidth > text.clientWidth) text.tabIndex = 0;
  }
}

foldCode();
focusWideText();
markSections();
