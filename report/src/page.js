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

  // What the address keeps: the moment, the one it is compared with, and the filters. It is written when nothing
  // has changed for a moment, since browsers allow few changes of an address.
  const view = new URLSearchParams(location.search);
  let writing = 0;
  const keep = (name, value) => {
    if (value === null || value === "") view.delete(name);
    else view.set(name, value);
    clearTimeout(writing);
    writing = setTimeout(writeAddress, 200);
  };
  let selected = null;
  const writeAddress = () => {
    const query = view.toString();
    const hash = selected === null ? location.hash : "#" + selected;
    selected = null;
    try { history.replaceState(null, "", location.pathname + (query ? "?" + query : "") + hash); } catch { /* The page is inside of another one. */ }
  };
  const select = (id) => {
    selected = id;
    clearTimeout(writing);
    writing = setTimeout(writeAddress, 200);
  };

  // The filters of the story.
  const boxes = () => all("#story .filters input");
  const keepFilters = () => keep("hide", boxes().filter((box) => !box.checked).map((box) => box.id.replace("show-", "")).join(","));
  const restoreFilters = () => {
    const hidden = (view.get("hide") || "").split(",");
    for (const box of boxes()) box.checked = !hidden.includes(box.id.replace("show-", ""));
  };

  // What was known after the first moments, by replaying their changes.
  const knownAt = (data, place) => {
    const known = { hypotheses: new Map(), open: new Map(), failing: [] };
    for (const moment of data.moments.slice(0, place + 1)) {
      for (const [number, ...rest] of moment.i || []) known.hypotheses.set(number, rest);
      for (const [number, isOpen] of moment.g || []) known.open.set(number, isOpen);
      known.failing = moment.f || known.failing;
    }
    return known;
  };
  const counted = (count, one, many) => count + " " + (count === 1 ? one : many);
  const hypothesisLink = (data, number) => {
    const [id, , address] = data.hypotheses[number];
    const name = link(address, id);
    name.className = "hypothesis-id hue" + ((number % 8) + 1);
    return name;
  };

  // What changed between two moments.
  const changesBetween = (data, from, to) => {
    const [before, after] = [knownAt(data, from), knownAt(data, to)];
    const list = make("ul", "");
    const put = (...parts) => list.append(make("li", "", ...parts));
    for (const [number, [sure, word, kind, sign]] of [...after.hypotheses].sort((a, b) => a[0] - b[0])) {
      const [oldSure, oldWord] = before.hypotheses.get(number) || [];
      if (sure === oldSure && word === oldWord) continue;
      const text = " " + data.hypotheses[number][1];
      if (!word) { if (oldWord) put(hypothesisLink(data, number), make("b", "bad", " removed"), text); continue; }
      const path = !oldWord ? " new" + (sure ? ", " + sure : "") : sure === oldSure ? " " + (sure || "") : " " + (oldSure || "–") + " → " + (sure || "–");
      const status = word === oldWord ? "" : " " + sign + " " + word;
      put(hypothesisLink(data, number), make("b", "num " + (status ? kind : ""), path + status), text);
    }
    for (const [number, isOpen] of after.open) {
      const [id, text] = data.questions[number];
      if (isOpen === (before.open.get(number) || false)) continue;
      put(make("b", isOpen ? "warn" : "good", isOpen ? "? open " : "✓ no longer open "), make("span", "claimid", id), " ", text);
    }
    for (const name of after.failing) if (!before.failing.includes(name)) put(make("b", "bad", "✗ fails now "), make("code", "", name));
    for (const name of before.failing) if (!after.failing.includes(name)) put(make("b", "good", "✓ no longer fails "), make("code", "", name));
    const [a, b] = [data.moments[from], data.moments[to]];
    const head = make("p", "meta", "From ", make("b", "", a.t), " to ", make("b", "", b.t));
    if (a.d && b.d) head.append(" · ", link(document.body.dataset.path + "/diff/" + encodeURIComponent(a.d) + "/" + encodeURIComponent(b.d), "every change"));
    if (!list.children.length) list.append(make("li", "soft", "No claim and no check changed."));
    const [files, commits] = [b.n[0] - a.n[0], b.n[1] - a.n[1]];
    const counts = [files && counted(files, "more file", "more files") + " edited", commits && counted(commits, "more commit", "more commits")];
    return [head, list, make("p", "soft small", counts.filter(Boolean).join(" · "))];
  };

  // The sliders: what was known at a moment, and what changed since another one.
  let stopPlay = () => {};
  let player = null;
  const setUpSlider = () => {
    stopPlay();
    player = null;
    const names = ["slider", "moment", "moment-data", "from", "from-row", "changes", "play", "speed", "stop", "compare"];
    const [slider, shown, source, from, fromRow, changes, play, speed, stop, compare] = names.map((id) => document.getElementById(id));
    if (!slider || !source) return;
    const data = JSON.parse(source.textContent);
    const last = data.moments.length - 1;
    const placeOf = (name, otherwise) => {
      const place = data.moments.findIndex((moment) => String(moment.a) === view.get(name));
      return place < 0 ? otherwise : place;
    };
    const mark = (kind, x) => {
      for (const chart of all(".chart")) {
        let cursor = one(".cursor" + (kind ? ".since" : ":not(.since)"), chart);
        if (!cursor) chart.append((cursor = svg("line", { class: "cursor" + kind, y1: 18, y2: "100%" })));
        cursor.setAttribute("visibility", x === null ? "hidden" : "visible");
        if (x === null) continue;
        cursor.setAttribute("x1", x + "%");
        cursor.setAttribute("x2", x + "%");
      }
    };
    const draw = () => {
      const place = Number(slider.value);
      const now = data.moments[place];
      const { hypotheses, open, failing } = knownAt(data, place);
      slider.setAttribute("aria-valuetext", now.t + ", " + now.l);
      const head = make("p", "meta", make("b", "", now.t), " · ", link(now.e, now.l));
      if (now.u) head.append(" · ", link(now.u, "the page as of then"));
      const parts = [head];
      if (now.q !== undefined) parts.push(make("p", "", make("span", "who", "Asked"), " ", data.asked[now.q]));
      const list = make("ul", "");
      for (const [number, [sure, word, kind, sign]] of [...hypotheses].sort((a, b) => a[0] - b[0])) {
        if (!word) continue;
        const bar = svg("svg", { class: "bar", width: 52, height: 8, "aria-hidden": "true" });
        bar.append(svg("rect", { class: "all", width: "100%", height: 6, y: 1, rx: 3 }));
        bar.append(svg("rect", { class: "plain", width: Number(sure || 0) * 100 + "%", height: 6, y: 1, rx: 3 }));
        list.append(make("li", "held", hypothesisLink(data, number), bar, make("span", "num " + kind, (sure || "–") + " " + sign + " " + word), make("span", "text", data.hypotheses[number][1])));
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
      parts.push(make("p", "soft small", counted(files, "file", "files") + " edited · " + counted(commits, "commit", "commits")));
      shown.replaceChildren(...parts);
      mark("", now.x);
      fromRow.hidden = changes.hidden = !compare.checked;
      if (compare.checked) {
        const other = Number(from.value);
        from.setAttribute("aria-valuetext", data.moments[other].t + ", " + data.moments[other].l);
        changes.replaceChildren(...changesBetween(data, Math.min(other, place), Math.max(other, place)));
        mark(" since", data.moments[other].x);
      } else mark(" since", null);
    };
    const moved = () => {
      keep("moment", Number(slider.value) === last ? null : data.moments[Number(slider.value)].a);
      keep("since", compare.checked ? data.moments[Number(from.value)].a : null);
      draw();
    };
    let timer = 0;
    stopPlay = () => {
      clearInterval(timer);
      timer = 0;
      play.textContent = "Play";
      shown.setAttribute("aria-live", "polite");
    };
    const step = (by) => {
      slider.value = Math.min(last, Math.max(0, Number(slider.value) + by));
      moved();
    };
    const begin = () => {
      clearInterval(timer);
      timer = setInterval(() => {
        step(1);
        const now = data.moments[Number(slider.value)];
        if (Number(slider.value) === last || (stop.checked && (now.i || now.g))) stopPlay();
      }, 1000 / Number(speed.value));
      play.textContent = "Pause";
      // What passes is not read out.
      shown.setAttribute("aria-live", "off");
    };
    const toggle = () => {
      if (timer) return stopPlay();
      if (Number(slider.value) === last) { slider.value = 0; moved(); }
      begin();
    };
    player = { step, toggle, compare: () => compare.click() };
    slider.addEventListener("input", () => { stopPlay(); moved(); });
    from.addEventListener("input", moved);
    compare.addEventListener("change", moved);
    speed.addEventListener("change", () => { if (timer) begin(); });
    play.addEventListener("click", toggle);
    slider.value = placeOf("moment", last);
    from.value = placeOf("since", 0);
    compare.checked = view.has("since");
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
    if (target.id) select(target.id);
  };

  const setUp = () => {
    all("[data-script]").forEach((element) => element.removeAttribute("hidden"));
    restoreFilters();
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

  document.addEventListener("change", (event) => { if (event.target.closest("#story .filters")) keepFilters(); });
  document.addEventListener("keydown", (event) => {
    const isText = event.target.closest("input:not([type=range], [type=checkbox]), textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || isText) return;
    const onSlider = event.target.closest("[type=range]");
    const done = {
      j: () => step(true),
      k: () => step(false),
      p: player && player.toggle,
      " ": onSlider && player && player.toggle,
      ",": player && (() => player.step(-1)),
      ".": player && (() => player.step(1)),
      c: player && player.compare,
    }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  window.addEventListener("hashchange", openTarget);
  setUp();
  setUpNews();
  openTarget();
})();
