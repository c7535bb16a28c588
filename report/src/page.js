"use strict";
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, classes, ...inside) => {
    const element = document.createElement(name);
    if (classes) element.className = classes;
    element.append(...inside);
    return element;
  };
  const link = (address, text) => {
    const element = make("a", "", text);
    element.href = address;
    return element;
  };
  const svg = (name, attributes) => {
    const element = document.createElementNS("http" + "://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // Opens every fold around the element that the address names.
  const openTarget = () => {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = name && document.getElementById(name);
    if (!target) return;
    const own = one(":scope > details", target);
    if (own && target.closest("#files")) own.open = true;
    for (let element = target; element; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    target.scrollIntoView();
    if (target.matches("[tabindex]")) target.focus({ preventScroll: true });
  };

  // The slider: what was known at a moment, by replaying the changes up to it.
  const setUpSlider = () => {
    const [slider, shown, source] = ["slider", "moment", "moment-data"].map((id) => document.getElementById(id));
    if (!slider || !source) return;
    const data = JSON.parse(source.textContent);
    const draw = () => {
      const place = Number(slider.value);
      const now = data.moments[place];
      const ideas = new Map(), open = new Map();
      let failing = [];
      for (const moment of data.moments.slice(0, place + 1)) {
        for (const [number, ...rest] of moment.i || []) ideas.set(number, rest);
        for (const [number, isOpen] of moment.g || []) open.set(number, isOpen);
        failing = moment.f || failing;
      }
      slider.setAttribute("aria-valuetext", now.t + ", " + now.l);
      const head = make("p", "meta", make("b", "", now.t), " · ", link(now.e, now.l));
      if (now.u) head.append(" · ", link(now.u, "the page as of then"));
      const parts = [head];
      if (now.q !== undefined) parts.push(make("p", "", make("span", "who", "Asked"), " ", data.asked[now.q]));
      const list = make("ul", "");
      for (const [number, [sure, word, kind, sign]] of [...ideas].sort((a, b) => a[0] - b[0])) {
        if (!word) continue;
        const [id, text, address] = data.ideas[number];
        const bar = svg("svg", { class: "bar", width: 52, height: 8, "aria-hidden": "true" });
        bar.append(svg("rect", { class: "all", width: "100%", height: 6, y: 1, rx: 3 }));
        bar.append(svg("rect", { class: "plain", width: Number(sure || 0) * 100 + "%", height: 6, y: 1, rx: 3 }));
        const name = link(address, id);
        name.className = "ideaid hue" + ((number % 8) + 1);
        list.append(make("li", "held", name, bar, make("span", "num " + kind, (sure || "–") + " " + sign + " " + word), make("span", "text", text)));
      }
      if (list.children.length) parts.push(list);
      const asked = [...open].filter(([, isOpen]) => isOpen).map(([number]) => data.questions[number]);
      if (asked.length) {
        parts.push(make("ul", "", ...asked.map(([id, text]) => make("li", "", make("b", "warn", "? "), make("span", "claimid", id), " ", text))));
      }
      if (failing.length) {
        parts.push(make("ul", "", ...failing.map((name) => make("li", "", make("b", "bad", "✗ failing: "), make("code", "", name)))));
      }
      const [files, commits] = now.n;
      const counts = files + (files === 1 ? " file" : " files") + " edited · " + commits + (commits === 1 ? " commit" : " commits");
      parts.push(make("p", "soft small", counts));
      shown.replaceChildren(...parts);
      for (const chart of all(".chart")) {
        let cursor = one(".cursor", chart);
        if (!cursor) chart.append((cursor = svg("line", { class: "cursor", y1: 18, y2: "100%" })));
        cursor.setAttribute("x1", now.x + "%");
        cursor.setAttribute("x2", now.x + "%");
      }
    };
    slider.addEventListener("input", draw);
    draw();
  };

  // j and k go from prompt to prompt.
  const step = (forward) => {
    const prompts = all("[data-prompt]").filter((prompt) => prompt.offsetParent);
    const edge = 90;
    const tops = prompts.map((prompt) => prompt.getBoundingClientRect().top);
    const here = prompts.indexOf(one(".here"));
    let next = here < 0 ? -1 : here + (forward ? 1 : -1);
    if (here < 0) next = forward ? tops.findIndex((top) => top > edge) : tops.findLastIndex((top) => top < edge - 80);
    const target = prompts[next];
    if (!target) return;
    all(".here").forEach((element) => element.classList.remove("here"));
    target.classList.add("here");
    target.scrollIntoView({ block: "start" });
    target.focus({ preventScroll: true });
  };

  const setUp = () => {
    all("[data-script]").forEach((element) => element.removeAttribute("hidden"));
    setUpSlider();
  };

  // A served page gets its changed parts.
  const setUpNews = () => {
    const { path, live, position } = document.body.dataset;
    if (!path || !live) return;
    let seen = all(".line, .you").length;
    const button = make("button", "news", "");
    button.type = "button";
    button.hidden = true;
    button.addEventListener("click", () => {
      button.hidden = true;
      seen = all(".line, .you").length;
      document.title = document.title.replace(/^\(\d+\) /, "");
      const lines = all(".line, .you");
      if (lines.length) lines[lines.length - 1].scrollIntoView({ block: "center" });
    });
    document.body.append(button);
    const put = (parts) => {
      const folds = new Set(all("details[open]").map((element) => element.closest("[id]")?.id));
      const checks = new Map(all(".filters input").map((box) => [box.id, box.checked]));
      for (const [id, html] of Object.entries(parts)) {
        const element = document.getElementById(id);
        if (element) element.innerHTML = html;
      }
      setUp();
      for (const id of folds) {
        const holder = id && document.getElementById(id);
        const fold = holder && one("details", holder);
        if (fold && holder.matches(".line, #files li")) fold.open = true;
      }
      for (const [id, checked] of checks) { const box = document.getElementById(id); if (box) box.checked = checked; }
      const lines = all(".line, .you");
      const fresh = lines.length - seen;
      if (fresh > 0) {
        lines.slice(seen).forEach((line) => line.classList.add("isnew"));
        button.textContent = fresh + " new ↓";
        button.hidden = false;
        document.title = "(" + fresh + ") " + document.title.replace(/^\(\d+\) /, "");
      }
    };
    const events = new EventSource(path + "/events?after=" + position);
    events.addEventListener("parts", (event) => put(JSON.parse(event.data)));
    events.addEventListener("reload", () => location.reload());
    events.onopen = () => { if (button.dataset.lost) { delete button.dataset.lost; button.hidden = true; } };
    events.onerror = () => { button.dataset.lost = "yes"; button.textContent = "connection lost"; button.hidden = false; };
  };

  document.addEventListener("keydown", (event) => {
    const isText = event.target.closest("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || isText) return;
    if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      step(event.key === "j");
    }
  });
  window.addEventListener("hashchange", openTarget);
  setUp();
  setUpNews();
  openTarget();
})();
