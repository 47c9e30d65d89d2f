/* The viewer for data/*.js, which call about(), page() and search(). All texts are inserted with textContent, so
 * that nothing in a record becomes markup. The URL fragment is the state of the view: p page, q search, r record, t
 * table. */
"use strict";

const FOUND_PER_PAGE = 100;
const PAGES_KEPT = 40;
const INKS = ["#ffd54a", "#6ee7a8", "#7cc4ff", "#ff9ec7", "#ffa94d", "#c4a5ff", "#5eead4", "#f87171", "#bef264", "#e5e7eb"];
const $ = (id) => document.getElementById(id);
const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
};

let all = null; /* argument of about() */
let state = { page: 0, query: "", record: -1, table: null };
let shown = []; /* records of the current page: {ordinal, row} */
let found = { query: "", ordinals: [], done: true };
let turn = 0; /* a newer turn invalidates pending results */

/* ---- Data: a file is a script that calls a function with its number ---- */

const waiting = new Map(), pages = new Map(), searches = new Map();

function load(kind, number) {
    const key = kind + number, known = waiting.get(key);
    if (known) return known.promise;
    const entry = {};
    entry.promise = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        entry.resolve = resolve;
        script.src = "data/" + kind + "-" + String(number).padStart(6, "0") + ".js";
        script.onload = () => script.remove();
        script.onerror = () => { waiting.delete(key); reject(new Error(script.getAttribute("src") + " cannot be read")); };
        document.head.append(script);
    });
    waiting.set(key, entry);
    return entry.promise;
}

function page(number, rows) {
    pages.set(number, rows);
    if (pages.size > PAGES_KEPT) pages.delete(pages.keys().next().value);
    const entry = waiting.get("page" + number);
    waiting.delete("page" + number);
    if (entry) entry.resolve(rows);
}

function search(number, first, rows) {
    /* Lower case once, so that each search is fast. */
    const made = rows.map((row) => ({ ordinal: 0, number: row[0], label: row[1].toLowerCase(), class: row[2],
        file: row[3].toLowerCase(), text: row[4].toLowerCase(), boxes: row[5] ? row[5].toLowerCase().split("\n") : [] }));
    made.forEach((row, i) => { row.ordinal = first + i; });
    searches.set(number, made);
    const entry = waiting.get("search" + number);
    waiting.delete("search" + number);
    if (entry) entry.resolve(made);
}

const pageOf = async (number) => pages.get(number) || load("page", number);
const searchOf = async (number) => searches.get(number) || load("search", number);
const rowOf = async (ordinal) => (await pageOf(Math.floor(ordinal / all.page)))[ordinal % all.page];

/* ---- Search: all words must match; name:text searches one field ---- */

function parse(query) {
    const words = [];
    for (const part of query.toLowerCase().match(/[^\s"]*"[^"]*"?|\S+/g) || []) {
        const colon = part.indexOf(":"), quote = part.indexOf('"');
        const isNamed = colon > 0 && (quote < 0 || colon < quote);
        const text = (isNamed ? part.slice(colon + 1) : part).replace(/"/g, "");
        if (text || isNamed) words.push({ name: isNamed ? part.slice(0, colon) : "", text, whole: part.replace(/"/g, "") });
    }
    return words;
}

function lineHas(text, name, value) {
    return text.split("\n").some((line) => {
        const at = line.indexOf("=");
        return at >= 0 && line.slice(0, at).includes(name) && line.slice(at + 1).includes(value);
    });
}

function hasWord(row, word) {
    if (word.name === "record") return String(row.number) === word.text;
    if (word.name === "label" || word.name === "class") return row.label === word.text || row.class === word.text;
    if (word.name === "box") return row.boxes.includes(word.text);
    if (word.name === "file") return row.file.includes(word.text);
    if (word.name && lineHas(row.text, word.name, word.text)) return true;
    const text = word.name ? word.whole : word.text;
    return row.label.includes(text) || row.file.includes(text) || row.text.includes(text) || String(row.number) === text;
}

/* Continues the search, calling seen after each file, until a newer turn begins. */
async function find(query, mine, seen) {
    const words = parse(query);
    found = { query, ordinals: [], done: false };
    for (let i = 0; i < all.searches; i++) {
        const rows = await searchOf(i);
        if (mine !== turn) return;
        for (const row of rows) if (words.every((word) => hasWord(row, word))) found.ordinals.push(row.ordinal);
        if (i % 8 === 7) seen();
    }
    found.done = true;
    seen();
}

/* ---- Elements ---- */

const countText = (count, one, many) => count.toLocaleString("en") + " " + (count === 1 ? one : many || one + "s");

function inkOf(text) {
    let sum = 7;
    for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
    return INKS[sum % INKS.length];
}

/* When a class of boxes is searched for, other boxes are hidden. */
const boxesOf = (row) => {
    const wanted = parse(state.query).filter((word) => word.name === "box").map((word) => word.text), boxes = row.b || [];
    return wanted.length ? boxes.filter((box) => wanted.includes(box[4].toLowerCase())) : boxes;
};

function shotOf(row, isLarge) {
    const p = row.p, isFull = isLarge && row.i && p && p.W > 0;
    if (!p || !(p.t || isFull)) {
        const none = element("span", "none");
        if (p) none.append(element("b", "", p.k ? p.k + ": " : ""), p.e || "no image");
        else none.textContent = row.raw || (row.x && row.x.length ? "no image" : "empty");
        return none;
    }
    const shot = element("span", "shot" + (p.W < 100 && p.H < 100 ? " tiny" : "")), image = element("img");
    const width = isFull ? p.W : p.w, height = isFull ? p.H : p.h;
    shot.style.setProperty("--ratio", width / height);
    if (isFull && !shot.classList.contains("tiny")) shot.style.maxWidth = width + "px";
    shot.style.display = "block";
    image.loading = isLarge ? "eager" : "lazy";
    image.alt = row.l || "";
    image.width = width;
    image.height = height;
    image.src = isFull ? row.i : p.t;
    shot.append(image);
    const boxes = boxesOf(row);
    for (const [left, top, right, bottom, text] of boxes) {
        const box = element("span", "box");
        box.style.left = left * 100 + "%";
        box.style.top = top * 100 + "%";
        box.style.width = Math.max(0, right - left) * 100 + "%";
        box.style.height = Math.max(0, bottom - top) * 100 + "%";
        box.style.setProperty("--ink", inkOf(text));
        if (text && (isLarge || boxes.length <= 8)) box.append(element("span", "", text));
        shot.append(box);
    }
    return shot;
}

const labelOf = (row) => row.l === undefined ? "" : row.l + (row.c !== undefined && row.c !== row.l ? " (" + row.c + ")" : "");
const placeOf = (row) => "record " + row.r.toLocaleString("en");
const fileOf = (row) => all.files[row.f] || "";

function valuesText(feature) {
    const [, kind, count, values] = feature;
    const text = values.join(kind === "bytes" ? "\n" : ", ");
    if (kind === "steps") return countText(count, "step") + ": " + text;
    return values.length < count ? text + (kind === "bytes" ? "\n" : ", ") + "… of " + countText(count, "value") : text;
}

/* ---- A page ---- */

function grid() {
    const made = element("div", "grid");
    shown.forEach(({ ordinal, row }) => {
        const card = element("button", "card"), frame = element("span", "frame");
        card.type = "button";
        card.dataset.ordinal = ordinal;
        frame.append(shotOf(row, false));
        card.append(frame, element("span", "words", labelOf(row) || placeOf(row)));
        const sub = element("span", "words sub", row.n || (labelOf(row) ? placeOf(row) : ""));
        if (row.p && row.p.t && row.p.e) {
            sub.textContent = row.p.e;
            sub.classList.add("fault");
        }
        sub.title = sub.textContent;
        card.append(sub);
        card.onclick = () => go({ record: ordinal });
        made.append(card);
    });
    return made;
}

function table() {
    const names = [];
    for (const { row } of shown)
        for (const feature of row.x || []) if (names.length < 60 && !names.includes(feature[0])) names.push(feature[0]);
    const made = element("table", "rows"), head = made.createTHead().insertRow(), body = made.createTBody();
    /* Columns with only numbers are aligned right. */
    const isNumber = (feature) => feature[1] === "int64" || feature[1] === "float";
    const kindOf = new Map(names.map((name) => [name, shown.every(({ row }) =>
        (row.x || []).every((feature) => feature[0] !== name || (isNumber(feature) && feature[2] <= 1))) ? "number" : ""]));
    for (const name of ["record", ...names]) {
        const cell = element("th", name === "record" ? "number" : kindOf.get(name), name);
        cell.scope = "col";
        head.append(cell);
    }
    for (const { ordinal, row } of shown) {
        const line = body.insertRow(), button = element("button", "", String(row.r));
        button.type = "button";
        button.dataset.ordinal = ordinal;
        const first = line.insertCell();
        first.className = "number";
        first.append(button);
        line.onclick = () => go({ record: ordinal });
        const values = new Map((row.x || []).map((feature) => [feature[0], feature]));
        for (const name of names) {
            const cell = line.insertCell();
            cell.className = kindOf.get(name);
            cell.textContent = values.has(name) ? valuesText(values.get(name)) : "";
        }
        if (row.raw) line.insertCell().textContent = row.raw;
    }
    const scroll = element("div", "scroll");
    scroll.append(made);
    return scroll;
}

const isSearch = () => state.query.trim() !== "";
const perPage = () => isSearch() ? FOUND_PER_PAGE : all.page;
const total = () => isSearch() ? found.ordinals.length : all.records;
const pageCount = () => Math.max(1, Math.ceil(total() / perPage()));
const isTable = () => state.table === null ? all.images === 0 : state.table;

function showPager() {
    const count = pageCount(), at = Math.min(state.page, count - 1);
    $("count").textContent = count.toLocaleString("en") + (isSearch() && !found.done ? "…" : "");
    $("number").value = at + 1;
    $("first").disabled = $("previous").disabled = at === 0;
    $("last").disabled = $("next").disabled = at >= count - 1;
    $("pages").hidden = count === 1;
    $("status").textContent = isSearch()
        ? (found.done ? "" : "searching… ") + countText(found.ordinals.length, "record") + " of " + all.records.toLocaleString("en")
        : "";
    $("pager").hidden = count === 1 && !isSearch();
}

async function showRows(mine) {
    const begin = Math.min(state.page, pageCount() - 1) * perPage(), end = Math.min(begin + perPage(), total());
    const ordinals = [];
    for (let i = begin; i < end; i++) ordinals.push(isSearch() ? found.ordinals[i] : i);
    const rows = [];
    for (const ordinal of ordinals) {
        rows.push({ ordinal, row: await rowOf(ordinal) });
        if (mine !== turn) return;
    }
    shown = rows;
    $("boxes").parentNode.hidden = !rows.some(({ row }) => row.b);
    const main = $("main");
    main.className = $("boxes").checked ? "" : "no-boxes";
    if (rows.length) main.replaceChildren(isTable() ? table() : grid());
    else main.replaceChildren(element("p", "note", isSearch() ? (found.done ? "No record matches." : "Searching…") : "There are no records."));
    showPager();
}

async function show() {
    const mine = ++turn;
    try {
        $("table").checked = isTable();
        if (document.activeElement !== $("query")) $("query").value = state.query;
        chooseClass();
        if (isSearch() && (found.query !== state.query || !found.done)) {
            let isShown = false;
            await find(state.query, mine, () => {
                showPager();
                if (isShown || (!found.done && found.ordinals.length < (state.page + 1) * FOUND_PER_PAGE)) return;
                isShown = true;
                showRows(mine).catch(complain);
            });
        } else {
            await showRows(mine);
        }
        if (mine === turn) await showDetail();
    } catch (error) {
        complain(error);
    }
}

function complain(error) {
    $("main").replaceChildren(element("p", "note fault", error.message));
}

/* ---- A record ---- */

function factRow(table, name, kind, text) {
    const line = table.insertRow(), head = element("th", "", name);
    head.scope = "row";
    line.append(head);
    line.insertCell().append(element("span", "kind", kind));
    line.insertCell().textContent = text;
}

async function showDetail() {
    const dialog = $("detail");
    if (state.record < 0 || state.record >= all.records) {
        if (dialog.open) dialog.close();
        return;
    }
    const row = await rowOf(state.record), body = $("body"), facts = element("div", "facts"), table = element("table");
    $("name").textContent = [row.n, labelOf(row)].filter((text) => text).join(" – ") || placeOf(row);
    if (row.p || row.raw) {
        const image = element("div", "image" + ($("boxes").checked ? "" : " no-boxes"));
        const shot = shotOf(row, true);
        if (row.i) {
            const link = element("a");
            link.href = row.i;
            link.title = "open the image";
            link.append(shot);
            image.append(link);
        } else {
            image.append(shot);
            if (row.p && row.p.t && (row.p.W > row.p.w || row.p.H > row.p.h))
                image.append(element("p", "kind", "thumbnail; the full image is not included in these pages"));
        }
        if (row.p && row.p.t && row.p.e) image.append(element("p", "fault", row.p.e));
        body.replaceChildren(image);
    } else {
        body.replaceChildren();
    }
    factRow(table, placeOf(row), "", fileOf(row) + ", byte " + row.o.toLocaleString("en"));
    if (row.p && row.p.k)
        factRow(table, row.p.k, "", (row.p.W ? row.p.W + " × " + row.p.H + " pixels, " : "") + row.p.s +
            (row.p.o > 1 ? ", EXIF orientation " + row.p.o + " (not applied)" : ""));
    for (const feature of row.x || []) factRow(table, feature[0], feature[1] === "steps" ? "list" : feature[1], valuesText(feature));
    if (row.left) factRow(table, "…", "", countText(row.left, "more feature") + " not shown");
    const scroll = element("div", "scroll");
    scroll.append(table);
    facts.append(scroll);
    body.append(facts);
    $("before").disabled = neighbour(-1) < 0;
    $("after").disabled = neighbour(1) < 0;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
}

/* The record before or after the open one, within the search if there is one; -1: none. */
function neighbour(step) {
    if (!isSearch()) {
        const next = state.record + step;
        return next >= 0 && next < all.records ? next : -1;
    }
    const at = found.ordinals.indexOf(state.record);
    const next = at < 0 ? undefined : found.ordinals[at + step];
    return next === undefined ? -1 : next;
}

function step(by) {
    const next = neighbour(by);
    if (next < 0) return;
    const place = isSearch() ? found.ordinals.indexOf(next) : next;
    go({ record: next, page: Math.floor(place / perPage()) }, true);
}

/* Closes the record; the focus returns to its card if that is on the page. */
function leaveRecord() {
    const ordinal = state.record;
    if (ordinal < 0) return;
    if ($("detail").open) $("detail").close();
    go({ record: -1 }, true);
    const card = document.querySelector('[data-ordinal="' + ordinal + '"]');
    if (card) card.focus();
}

/* ---- Navigation ---- */

function go(change, isQuiet) {
    const next = { ...state, ...change }, parts = [];
    if (next.page > 0) parts.push("p=" + (next.page + 1));
    if (next.query.trim()) parts.push("q=" + encodeURIComponent(next.query));
    if (next.table !== null) parts.push("t=" + (next.table ? 1 : 0));
    if (next.record >= 0) parts.push("r=" + next.record);
    const hash = "#" + parts.join("&");
    if (isQuiet) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    read();
}

function read() {
    const before = state;
    state = { page: 0, query: "", record: -1, table: null };
    for (const part of location.hash.slice(1).split("&")) {
        const value = part.slice(2);
        if (part.startsWith("p=")) state.page = Math.max(0, (parseInt(value, 10) || 1) - 1);
        if (part.startsWith("r=")) state.record = parseInt(value, 10);
        if (part.startsWith("t=")) state.table = value === "1";
        if (part.startsWith("q=")) {
            try { state.query = decodeURIComponent(value); } catch { state.query = value; }
        }
    }
    if (!(state.record >= 0)) state.record = -1;
    const isSame = shown.length > 0 && before.page === state.page && before.query === state.query && before.table === state.table;
    if (isSame && (found.done || !isSearch())) showDetail().catch(complain);
    else show();
    if (before.page !== state.page || before.query !== state.query) scrollTo(0, 0);
}

/* The lists show the searched class if the search is exactly one of their entries. */
function chooseClass() {
    for (const [id, name] of [["classes", "label"], ["kinds", "box"]]) {
        const word = parse(state.query).find((each) => each.name === name);
        const option = [...$(id).options].find((each) => word && each.value.toLowerCase() === word.text);
        $(id).value = option ? option.value : "";
    }
}

function fillClasses(id, classes, title) {
    const first = element("option", "", title);
    first.value = "";
    $(id).append(first);
    for (const [text, count] of classes) {
        const option = element("option", "", text + " (" + count.toLocaleString("en") + ")");
        option.value = text;
        $(id).append(option);
    }
}

function about(what) {
    all = what;
    document.title = all.name;
    $("title").textContent = all.name + " ";
    $("title").title = all.files.slice(0, 20).join("\n");
    $("title").append(element("small", "", countText(all.records, "record") +
        (all.files.length > 1 ? " in " + countText(all.files.length, "file") : "") +
        (all.images && all.images !== all.records ? ", " + countText(all.images, "image") : "") +
        (all.faults ? ", " + all.faults.toLocaleString("en") + " damaged" : "")));
    fillClasses("classes", all.classes, "all classes");
    fillClasses("kinds", all.boxes, "all boxes");
    $("classes").hidden = all.classes.length < 2;
    $("kinds").hidden = all.boxes.length < 1;
    read();
}

/* ---- Mouse and keyboard ---- */

let delay = 0;
$("query").oninput = () => {
    clearTimeout(delay);
    delay = setTimeout(() => go({ query: $("query").value, page: 0, record: -1 }, true), 200);
};
$("form").onsubmit = (event) => {
    event.preventDefault();
    clearTimeout(delay);
    go({ query: $("query").value, page: 0, record: -1 });
};
const chosen = () => {
    const label = $("classes").value, box = $("kinds").value;
    const words = [label ? 'label:"' + label + '"' : "", box ? 'box:"' + box + '"' : ""];
    $("query").value = words.filter((word) => word).join(" ");
    go({ query: $("query").value, page: 0, record: -1 });
};
$("classes").onchange = $("kinds").onchange = chosen;
$("table").onchange = () => go({ table: $("table").checked });
$("boxes").onchange = () => { $("main").className = $("boxes").checked ? "" : "no-boxes"; };
$("first").onclick = () => go({ page: 0 });
$("previous").onclick = () => go({ page: Math.max(0, state.page - 1) });
$("next").onclick = () => go({ page: Math.min(pageCount() - 1, state.page + 1) });
$("last").onclick = () => go({ page: pageCount() - 1 });
$("number").onchange = () => {
    const number = parseInt($("number").value, 10);
    go({ page: number >= 1 ? Math.min(number, pageCount()) - 1 : state.page });
    showPager();
};
$("before").onclick = () => step(-1);
$("after").onclick = () => step(1);
$("close").onclick = leaveRecord;
$("detail").onclick = (event) => { if (event.target === $("detail")) leaveRecord(); };
$("detail").oncancel = (event) => { event.preventDefault(); leaveRecord(); };
$("detail").onclose = leaveRecord;

/* The card above or below the focused one. */
function moveFocus(card, key) {
    const cards = [...document.querySelectorAll(".card")], at = cards.indexOf(card);
    const columns = Math.max(1, cards.findIndex((other) => other.offsetTop > cards[0].offsetTop));
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
    const next = cards[at + by];
    if (next) next.focus();
    return next !== undefined;
}

addEventListener("keydown", (event) => {
    const target = event.target, isText = target.matches("input[type=search], input[type=text], select");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ($("detail").open) {
        if (event.key === "ArrowLeft") step(-1);
        if (event.key === "ArrowRight") step(1);
        return;
    }
    if (isText) {
        if (event.key === "Escape") $("main").focus();
        return;
    }
    if (event.key === "/") {
        event.preventDefault();
        $("query").select();
    }
    if (event.key === "[" && !$("previous").disabled) $("previous").click();
    if (event.key === "]" && !$("next").disabled) $("next").click();
    if (target.matches(".card") && event.key.startsWith("Arrow") && moveFocus(target, event.key)) event.preventDefault();
});
addEventListener("popstate", () => { if (all) read(); });
addEventListener("hashchange", () => { if (all) read(); });
