// Taking an answer away: as lines of Python, or as a notebook. Neither holds the token.

const text = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value)); // also how Python writes them

const options = ({ dataset, sql, ...how }) => Object.entries(how).map(([name, value]) => `, ${name}=${text(value)}`).join("");

export function python(asked, address) {
  return [
    "import os",
    "",
    "import farthing",
    "",
    `with farthing.connect(${text(address)}, os.environ["FARTHING_TOKEN"], dataset=${text(asked.dataset)}) as session:`,
    `    answer = session.sql(${text(asked.sql)}${options(asked)})`,
    "    print(answer.to_pandas())",
    "",
  ].join("\n");
}

export function notebook(asked, address) {
  const code = (id, ...lines) => ({ cell_type: "code", id, execution_count: null, metadata: {}, outputs: [], source: lines.join("\n") });
  const cells = [
    { cell_type: "markdown", id: "about", metadata: {}, source: "A question that was answered by a farthing server. It is free to ask again." },
    code(
      "connect", "import getpass", "import os", "", "import farthing", "",
      'token = os.environ.get("FARTHING_TOKEN") or getpass.getpass("Your token: ")',
      `session = farthing.connect(${text(address)}, token, dataset=${text(asked.dataset)})`,
    ),
    code("ask", `answer = session.sql(${text(asked.sql)}${options(asked)})`, "answer"),
    code("rows", "answer.to_pandas()"),
  ];
  const metadata = { kernelspec: { display_name: "Python 3", language: "python", name: "python3" }, language_info: { name: "python" } };
  return JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

export function keep(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.download = name;
  link.href = address;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
