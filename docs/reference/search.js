
const input = document.querySelector("input"), found = document.querySelector("#found");
input.oninput = () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (name) => name.length + (name.includes("_" + words[0]) ? 0 : 100);
  const names = words.length ? Object.keys(NAMES).filter((n) => words.every((w) => n.toLowerCase().includes(w))) : [];
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  found.replaceChildren(...names.slice(0, 40).map((name) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = NAMES[name] + "#" + name;
    link.textContent = name;
    item.append(link);
    return item;
  }));
};
input.onkeydown = (event) => { if (event.key === "Enter") found.querySelector("a")?.click(); };
document.onkeydown = (event) => {
  if (event.key !== "/" || document.activeElement === input) return;
  event.preventDefault();
  input.focus();
};
