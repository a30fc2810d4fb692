// The chat widget of Bahi. A page shows it by <script src="https://…/widget.js" data-channel="KEY" async></script>. It needs nothing of
// the page, sets no inline style and evaluates no text. A page's policy only has to allow the widget's server, in script-src and
// connect-src.
(() => {
  "use strict";
  const script = document.currentScript;
  const key = script && script.dataset.channel;
  if (!key || window.bahiChat === key) return;
  window.bahiChat = key;
  const base = new URL("api/web-chat/" + encodeURIComponent(key), script.src).href;

  const words = {
    en: {
      open: "Chat with us", close: "Close the chat", title: "Chat with us", hello: "Hello! Write to us here. We answer as soon as we can.",
      label: "Your message", hint: "Write a message", send: "Send", you: "You", person: "Us", bot: "Automatic answer", failed: "Not sent.", again: "Try again",
      offline: "No connection. We keep trying.", files: "Files cannot be sent here.", busy: "Too many messages. Wait a minute.", gone: "The chat is closed.", image: "Image",
      fresh: n => n + (n === 1 ? " new message" : " new messages"),
    },
    hi: {
      open: "हमसे बात करें", close: "बातचीत बंद करें", title: "हमसे बात करें", hello: "नमस्ते! यहाँ हमें लिखें। हम जल्द से जल्द जवाब देंगे।",
      label: "आपका संदेश", hint: "संदेश लिखें", send: "भेजें", you: "आप", person: "हम", bot: "स्वचालित जवाब", failed: "नहीं भेजा गया।", again: "फिर कोशिश करें",
      offline: "कनेक्शन नहीं है। हम कोशिश कर रहे हैं।", files: "यहाँ फ़ाइलें नहीं भेजी जा सकतीं।", busy: "बहुत सारे संदेश। एक मिनट रुकें।", gone: "यह बातचीत बंद है।", image: "चित्र",
      fresh: n => n + (n === 1 ? " नया संदेश" : " नए संदेश"),
    },
    gu: {
      open: "અમારી સાથે વાત કરો", close: "વાતચીત બંધ કરો", title: "અમારી સાથે વાત કરો", hello: "નમસ્તે! અહીં અમને લખો. અમે બને તેટલો જલદી જવાબ આપીશું.",
      label: "તમારો સંદેશ", hint: "સંદેશ લખો", send: "મોકલો", you: "તમે", person: "અમે", bot: "આપોઆપ જવાબ", failed: "મોકલાયો નથી.", again: "ફરી પ્રયત્ન કરો",
      offline: "કનેક્શન નથી. અમે પ્રયત્ન કરી રહ્યા છીએ.", files: "અહીં ફાઇલો મોકલી શકાતી નથી.", busy: "ઘણા બધા સંદેશ. એક મિનિટ રાહ જુઓ.", gone: "આ વાતચીત બંધ છે.", image: "ચિત્ર",
      fresh: n => n + (n === 1 ? " નવો સંદેશ" : " નવા સંદેશ"),
    },
  };
  const wanted = [script.dataset.lang, ...(navigator.languages || [navigator.language])].map(l => String(l || "").slice(0, 2).toLowerCase());
  const lang = wanted.find(l => l in words) || "en";
  const say = words[lang];

  // If the page may not store anything, the conversation ends when the visitor leaves the page.
  const store = (of, name) => {
    const full = "bahi-chat-" + key + "-" + name;
    let kept = null;
    return {
      get() { try { return of.getItem(full) ?? kept; } catch { return kept; } },
      set(value) { kept = value; try { value === null ? of.removeItem(full) : of.setItem(full, value); } catch { /* it is not allowed to */ } },
    };
  };
  const area = name => { try { return window[name]; } catch { return null; } };
  const token = store(area("localStorage"), "token"), seen = store(area("localStorage"), "seen");
  const opened = store(area("sessionStorage"), "open"), draft = store(area("sessionStorage"), "draft"), unsent = store(area("sessionStorage"), "unsent");

  const el = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const icon = path => {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), p = document.createElementNS(ns, "path");
    for (const [k, v] of Object.entries({ viewBox: "0 0 24 24", width: 24, height: 24, "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" })) svg.setAttribute(k, v);
    p.setAttribute("d", path);
    svg.append(p);
    return svg;
  };
  const host = el("aside", { lang, "aria-label": say.title, "data-bahi-chat": "" }), root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { all: initial; color-scheme: light dark; --card: light-dark(#fff, #1f1c19); --paper: light-dark(#fbf9f5, #161412); --ink: light-dark(#23201c, #ece6dc);
      --soft: light-dark(#665f56, #a89f92); --line: light-dark(#8b8377, #857b6e); --cloth: light-dark(#9c2f2b, #ef9a8f); --on: light-dark(#fff, #2b0d0a);
      --ours: light-dark(#efebe4, #2e2a25); --bad: light-dark(#a3201f, #ffa199); --focus: light-dark(#235a94, #93c1f0); }
    * { box-sizing: border-box; font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Gujarati", sans-serif; }
    [hidden] { display: none !important; }
    :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
    button { cursor: pointer; border: 0; border-radius: 8px; padding: 0 16px; min-height: 44px; background: var(--cloth); color: var(--on); font-weight: 600; }
    .launch { position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: 2147483000; display: flex; align-items: center; gap: 10px; min-height: 52px; border-radius: 26px;
      padding: 0 20px; box-shadow: 0 3px 14px #0005; }
    .count { min-width: 22px; padding: 0 6px; border-radius: 11px; background: var(--on); color: var(--cloth); font-weight: 700; text-align: center; }
    .panel { position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: 2147483000; display: flex; flex-direction: column; width: 372px; height: min(560px, calc(100dvh - 40px));
      background: var(--paper); color: var(--ink); border: 1px solid var(--line); border-radius: 14px; overflow: hidden; box-shadow: 0 8px 34px #0006; }
    header { display: flex; align-items: center; justify-content: space-between; gap: 10px; padding: 6px 6px 6px 18px; background: var(--cloth); color: var(--on); }
    h2 { margin: 0; font-size: 17px; font-weight: 650; }
    header button { display: grid; place-items: center; width: 44px; padding: 0; background: none; }
    header button:focus-visible { outline-color: var(--on); outline-offset: -4px; }
    .log { flex: 1; overflow-y: auto; padding: 16px; overscroll-behavior: contain; }
    .log > * { max-width: 86%; margin: 0 0 12px; }
    .who, time, .note { color: var(--soft); font-size: 12.5px; }
    .said { width: fit-content; margin: 2px 0; padding: 8px 13px; border-radius: 4px 14px 14px; background: var(--ours); white-space: pre-wrap; overflow-wrap: anywhere; }
    .in { margin-inline-start: auto; display: grid; justify-items: end; }
    .in .said { border-radius: 14px 4px 14px 14px; background: var(--cloth); color: var(--on); }
    .waiting .said { border-end-end-radius: 0; }
    .hello { margin-bottom: 12px !important; }
    .who, p { margin: 0; }
    .said a { color: inherit; } .said img { display: block; max-width: 100%; border-radius: 8px; }
    .again { min-height: 32px; padding: 0 10px; margin-inline-start: 8px; background: none; color: var(--bad); border: 1px solid; font-size: 13px; }
    .wrong { color: var(--bad); font-size: 13px; }
    .note { padding: 0 16px 6px; }
    form { display: flex; gap: 8px; align-items: flex-end; padding: 12px; border-top: 1px solid var(--line); background: var(--card); }
    label { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    textarea { flex: 1; min-width: 0; min-height: 44px; max-height: 130px; resize: none; padding: 10px 12px; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 8px; field-sizing: content; font-size: 16px; }
    textarea::placeholder { color: var(--soft); opacity: 1; }
    @media (max-width: 480px) { .panel { inset: 0; width: auto; height: 100dvh; border: 0; border-radius: 0; } .launch { inset-block-end: 14px; inset-inline-end: 14px; } }
    @media (prefers-reduced-motion: no-preference) { .launch { transition: transform .15s; } .launch:hover { transform: translateY(-2px); } }`);
  root.adoptedStyleSheets = [sheet];

  const count = el("span", { class: "count", hidden: "" });
  const launch = el("button", { type: "button", class: "launch", "aria-expanded": "false", "aria-haspopup": "dialog" }, icon("M21 12a8 8 0 0 1-8 8H4l2-3a8 8 0 1 1 15-5z"), el("span", {}, say.open), count);
  const leave = el("button", { type: "button", "aria-label": say.close }, icon("M6 6l12 12M18 6L6 18"));
  const log = el("div", { class: "log", role: "log", "aria-label": say.title, tabindex: "0" }, el("p", { class: "said hello" }, say.hello));
  const note = el("p", { class: "note", role: "status" });
  const field = el("textarea", { id: "text", rows: "1", maxlength: "4096", placeholder: say.hint, enterkeyhint: "send" });
  const form = el("form", {}, el("label", { for: "text" }, say.label), field, el("button", {}, say.send));
  const panel = el("section", { class: "panel", role: "dialog", "aria-labelledby": "title", hidden: "" }, el("header", {}, el("h2", { id: "title" }, say.title), leave), log, note, form);
  root.append(launch, panel);

  const rows = new Map(); // the shown messages by id
  let sending = 0, held = [], last = "", running = null, wait = 1000, closed = false;
  const number = id => Number(String(id).replace(/\D/g, "")) || 0;

  const unread = () => {
    const n = panel.hidden ? [...rows].filter(([id, r]) => r.out && number(id) > number(seen.get())).length : 0;
    count.hidden = !n;
    count.textContent = n;
    launch.setAttribute("aria-label", n ? say.open + ", " + say.fresh(n) : say.open);
    if (!panel.hidden) seen.set(String(Math.max(number(seen.get()), ...[...rows.keys()].map(number))));
  };

  const link = url => { try { const u = new URL(url); return u.protocol === "https:" || u.protocol === "http:" ? u.href : ""; } catch { return ""; } };
  const fill = (e, m) => {
    const said = el("div", { class: "said" });
    const url = m.mediaUrl && link(m.mediaUrl);
    if (url) {
      const img = el("img", { src: url, alt: m.text || say.image, referrerpolicy: "no-referrer" });
      img.onerror = () => img.replaceWith(say.image);
      said.append(el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, img));
    }
    if (m.text) said.append(el("p", {}, m.text));
    const at = new Date(m.at);
    e.className = m.direction;
    e.replaceChildren(el("p", { class: "who" }, m.direction === "in" ? say.you : say[m.by] || say.person, " · ", el("time", { datetime: m.at }, at.toLocaleTimeString(lang, { hour: "numeric", minute: "2-digit" }))), said);
  };
  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  const show = (m, into) => {
    const stay = atEnd(), now = m.text + " " + m.mediaUrl, known = rows.get(m.id);
    if (known && known.now === now) { if (into) into.remove(); return; }
    const e = known ? known.e : log.appendChild(into || el("div"));
    fill(e, m);
    rows.set(m.id, { e, now, out: m.direction === "out" });
    if (stay || m.direction === "in") log.scrollTop = log.scrollHeight;
    unread();
  };

  const call = (path, options) => fetch(base + path, { credentials: "omit", referrerPolicy: "no-referrer", ...options });
  let beginning = null;
  const session = () => beginning ||= (async () => {
    if (token.get()) return token.get();
    const a = await call("/sessions", { method: "POST" });
    if (!a.ok) throw a;
    token.set((await a.json()).token);
    return token.get();
  })().finally(() => { beginning = null; });
  const forget = () => { token.set(null); seen.set(null); last = ""; };

  // Unsent texts wait for the next connection, even on the next page.
  const failed = new Map(), waiting = () => JSON.parse(unsent.get() || "[]");
  const keep = (id, text) => {
    const all = waiting().filter(([other]) => other !== id);
    if (text) all.push([id, text]);
    unsent.set(all.length ? JSON.stringify(all) : null);
  };
  const resend = async () => { for (const again of [...failed.values()]) await again(); };

  // send posts a text until the server has stored it. A retry has the same key, so the text is stored once.
  const send = async (text, id, e) => {
    sending++;
    failed.delete(id);
    keep(id, text);
    fill(e, { direction: "in", text, at: new Date().toISOString() });
    e.classList.add("waiting");
    log.scrollTop = log.scrollHeight;
    try {
      let a;
      for (let tries = 0; ; tries++) {
        a = await call("/messages", { method: "POST", headers: { "Authorization": "Bearer " + await session(), "Content-Type": "application/json", "Idempotency-Key": id }, body: JSON.stringify({ text }) });
        if (a.status !== 401 || tries) break;
        forget();
      }
      if (!a.ok) throw a;
      show(await a.json(), e);
      keep(id);
      e.classList.remove("waiting");
      note.textContent = "";
      listen();
    } catch (why) {
      if (why.status < 500 && why.status !== 429) keep(id); else failed.set(id, () => send(text, id, e));
      const again = el("button", { type: "button", class: "again" }, say.again);
      again.onclick = () => { field.focus(); send(text, id, e); };
      e.append(el("p", { class: "wrong", role: "alert" }, why.status === 429 ? say.busy : why.status === 403 || why.status === 404 ? say.gone : say.failed, again));
    } finally {
      if (!--sending) held.splice(0).forEach(m => show(m));
    }
  };

  // listen subscribes to the conversation, and reconnects whenever the stream ends.
  const listen = async () => {
    if (running || closed || !token.get()) return;
    const stop = running = new AbortController();
    let alive = 0;
    const watch = () => { clearTimeout(alive); alive = setTimeout(() => stop.abort(), 45000); }; // the server sends a heartbeat every 15 s
    try {
      watch();
      const headers = { "Authorization": "Bearer " + token.get(), "Accept": "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const a = await call("/stream", { headers, signal: stop.signal, cache: "no-store" });
      if (a.status === 401) { forget(); return; }
      if (a.status === 403 || a.status === 404) { closed = true; note.textContent = say.gone; return; }
      if (!a.ok) throw a;
      const lines = a.body.pipeThrough(new TextDecoderStream()).getReader();
      note.textContent = "";
      wait = 1000;
      setTimeout(resend, 1000); // after the earlier messages
      for (let rest = ""; ;) {
        const { value, done } = await lines.read();
        if (done) break;
        watch();
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        parts.forEach(take);
      }
    } catch {
      note.textContent = say.offline;
    } finally {
      clearTimeout(alive);
      running = null;
      if (token.get() && !closed) setTimeout(listen, wait * (.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 30000);
    }
  };
  const take = block => {
    let id = "", data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (data) {
      const m = JSON.parse(data);
      if (m.direction === "in" && sending) held.push(m); else show(m); // the stream may precede the post's response
    }
    if (id) last = id;
  };

  const toggle = open => {
    panel.hidden = !open;
    launch.hidden = open;
    launch.setAttribute("aria-expanded", String(open));
    opened.set(open ? "1" : null);
    if (open) log.scrollTop = log.scrollHeight;
    unread();
  };
  launch.onclick = () => { toggle(true); field.focus(); };
  leave.onclick = () => { toggle(false); launch.focus(); };
  panel.onkeydown = e => { if (e.key === "Escape") { e.stopPropagation(); leave.onclick(); } };
  field.value = draft.get() || "";
  field.oninput = () => draft.set(field.value || null);
  field.onkeydown = e => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); form.requestSubmit(); } };
  form.onsubmit = e => {
    e.preventDefault();
    const text = field.value.trim();
    if (!text || closed) return;
    field.value = "";
    draft.set(null);
    send(text, crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now(), log.appendChild(el("div")));
  };
  const refuse = e => { if ((e.clipboardData || e.dataTransfer)?.files.length) { e.preventDefault(); note.textContent = say.files; } };
  panel.addEventListener("paste", refuse);
  panel.addEventListener("drop", refuse);
  panel.addEventListener("dragover", e => { if ([...e.dataTransfer.types].includes("Files")) e.preventDefault(); });
  addEventListener("online", () => { wait = 1000; token.get() ? listen() : resend(); });

  const start = () => {
    document.body.append(host);
    toggle(opened.get() === "1");
    for (const [id, text] of waiting()) failed.set(id, () => send(text, id, log.appendChild(el("div"))));
    token.get() ? listen() : resend();
  };
  document.body ? start() : addEventListener("DOMContentLoaded", start);
})();
