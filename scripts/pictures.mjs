// Makes the pictures of README.md: runs the shown commands in a terminal and draws their output as SVG, which is sharp
// on every screen.
//
//   node scripts/pictures.mjs             all pictures of docs/images
//   node scripts/pictures.mjs provider    one of them
//
// Needs jq, curl and script (util-linux). The ports 8402 and 4010 must be free.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const CHECKOUT = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');
const IMAGES = join(CHECKOUT, 'docs', 'images');
const CLI = 'node bin/tollgate.mjs';
const ASK = `\\\n    -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json'`;

// A step shows the command `show` after the prompt and runs it. If there is `run`, this is run instead. With `until`
// the program stays running, and the next step begins when the program has printed this text.
/** Cuts the audit's output, which is long and always the same. */
const withoutBooks = (text) => `${text.split(/^.*At http/m)[0].trimEnd()}\n…\n${text.trimEnd().split('\n').at(-1)}`;

const PICTURES = {
  'first-call': [
    {
      show: 'npm start',
      run: `${CLI} start`,
      until: 'Ctrl-C stops it',
      keep: (text) => text.split('Try it:')[0].replace(/^.*\n/, ''),
    },
    {
      show: `curl http://127.0.0.1:8402/api/v1/chat/completions ${ASK} \\\n    -d '{"model":"demo/chat","messages":[{"role":"user","content":"What is 2 + 3?"}]}' \\\n    | jq '.choices[0].message.content, .usage.cost_details.charged_usd'`,
    },
    {
      show: `curl http://127.0.0.1:8402/mcp/demo/tools ${ASK} \\\n    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call",\n         "params":{"name":"roll_dice","arguments":{"dice":"2d6"}}}' \\\n    | jq -c '.result.structuredContent, .result._meta["tollgate/generation"]'`,
    },
    {
      show: `curl http://127.0.0.1:8402/a2a/demo/agent ${ASK} \\\n    -d '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":\n         {"messageId":"first","role":"user","parts":[{"kind":"text","text":"Roll 2d6"}]}}}' \\\n    | jq -c '.result | .artifacts[0].parts[0,2].text, .metadata["tollgate/generation"]'`,
    },
  ],
  provider: [
    { run: `${CLI} start`, until: 'Ctrl-C stops it' },
    {
      run: 'node_modules/.bin/llmock -p 4010 -f examples/greetings.json',
      until: 'listening',
    },
    { show: `${CLI} keygen --chain solana --out wallet.json`, keep: (text) => text.split('\n')[0] },
    { show: `${CLI} provide --config provider.toml`, until: 'ready: calls can come' },
    {
      show: `curl http://127.0.0.1:8402/api/v1/chat/completions ${ASK} \\\n    -d '{"model":"acme/mock","messages":[{"role":"user","content":"hello"}]}' \\\n    | jq '.choices[0].message.content, .usage.cost_details.charged_usd'`,
    },
  ],
  'paid-call': [{ show: 'npm run demo:chain', run: 'node examples/paid-call/run.ts', keep: withoutBooks }],
};
const PROVIDER_TOML = /```toml\n# provider\.toml\n([\s\S]*?)```/.exec(
  readFileSync(join(CHECKOUT, 'README.md'), 'utf8'),
)[1];

async function make(name, steps) {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-picture-'));
  const running = [];
  try {
    // The commands run in a temporary folder that looks like the checkout, so that they leave nothing behind.
    for (const entry of ['bin', 'src', 'examples', 'node_modules', 'package.json'])
      symlinkSync(join(CHECKOUT, entry), join(dir, entry));
    writeFileSync(join(dir, 'provider.toml'), PROVIDER_TOML);
    const blocks = [];
    let env = {
      PATH: `${join(CHECKOUT, 'node_modules', '.bin')}:${process.env.PATH}`,
      HOME: dir,
      TERM: 'xterm-256color',
      OLLAMA_HOST: '127.0.0.1:9',
      LANG: 'C.UTF-8',
    };
    for (const { show, run = silent(show), until, keep = (text) => text } of steps) {
      const printed = keep(clean(await terminal(run, { dir, env, until, running })));
      const dev = join(dir, '.tollgate', 'dev.json');
      if (statSync(dev, { throwIfNoEntry: false }))
        env = { ...env, KEY: JSON.parse(readFileSync(dev, 'utf8')).api_key };
      if (show !== undefined) blocks.push(`\u001B[1;32m$\u001B[0m ${show}\n${trimmed(printed)}`);
    }
    draw(name, blocks.join('\n\n'));
  } finally {
    for (const child of running) process.kill(-child.pid, 'SIGTERM');
    await new Promise((done) => setTimeout(done, running.length > 0 ? 1500 : 0));
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Removes curl's progress bar and forces jq's colours, which it normally uses only on a terminal. */
const silent = (command) => command.replace(/^curl /, 'curl -s ').replace('| jq ', '| jq -C ');

/** Runs a command in a pseudo-terminal and returns its output. */
function terminal(command, { dir, env, until, running }) {
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: dir,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  return new Promise((done, failed) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      if (until === undefined || running.includes(child) || !output.includes(until)) return;
      running.push(child);
      done(output);
    });
    child.on('exit', (code) =>
      until === undefined && code === 0 ? done(output) : failed(new Error(`${command} ended with ${code}:\n${output}`)),
    );
  });
}

const clean = (text) => text.replaceAll('\r', '').replace(/^\n+/, '');
const ESCAPE = '\u001B';
const STYLE = `${ESCAPE}\\[([\\d;]*)m`;
/** Removes blank lines at the end, even if they contain colour codes. */
const trimmed = (text) => `${text.replace(new RegExp(`(?:\\s|${STYLE})+$`), '')}${ESCAPE}[0m`;

const COLORS = {
  30: '#6e7681',
  31: '#ff7b72',
  32: '#3fb950',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#56d4dd',
  90: '#8b949e',
};
const PLAIN = { color: '#e6edf3', bold: false, dim: false, italic: false };
const FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
/** Pixels per column and per line, and of the border. */
const [ACROSS, DOWN, PAD] = [8.4, 20, 22];
const COLUMNS_MAX = 104;

/**
 * Splits text with terminal codes into lines of runs. Each run has one style. Long lines are broken as in a terminal.
 */
function runsOf(text) {
  const lines = [[]];
  let style = PLAIN;
  let column = 0;
  const open = () => {
    lines.push([]);
    column = 0;
  };
  for (const part of text.split(new RegExp(`(${ESCAPE}\\[[\\d;]*m|\n)`))) {
    const codes = new RegExp(`^${STYLE}$`).exec(part)?.[1].split(';').map(Number);
    if (part === '\n') open();
    else if (codes) for (const code of codes) style = styleAfter(style, code);
    else
      for (let rest = part; rest !== '';) {
        if (column === COLUMNS_MAX) open();
        const piece = rest.slice(0, COLUMNS_MAX - column);
        lines.at(-1).push({ column, text: piece, style });
        column += piece.length;
        rest = rest.slice(piece.length);
      }
  }
  return lines;
}

function styleAfter(style, code) {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 39) return { ...style, color: PLAIN.color };
  return { ...style, color: COLORS[code] ?? style.color };
}

function draw(name, text) {
  const lines = runsOf(text);
  const columns = Math.max(...lines.flat().map((run) => run.column + run.text.length));
  const width = Math.ceil(columns * ACROSS) + 2 * PAD;
  const height = lines.length * DOWN + 2 * PAD;
  const rows = lines.flatMap((runs, line) => runs.flatMap(wordsOf).map((run) => drawn(run, line)));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="${FONT}" font-size="14">
${rows.join('\n')}
</g>
</svg>
`;
  mkdirSync(IMAGES, { recursive: true });
  const file = join(IMAGES, `${name}.svg`);
  writeFileSync(file, svg);
  console.log(`${file}  ${width} × ${height}  ${Math.round(svg.length / 1024)} KB`);
}

/** Splits a run at wider gaps, because an SVG viewer may collapse several spaces. */
const wordsOf = ({ column, text, style }) =>
  [...text.matchAll(/\S+(?: \S+)*/g)].map((found) => ({ column: column + found.index, text: found[0], style }));

/** Draws one run. `textLength` is set, so that columns align in every font. */
function drawn({ column, text, style }, line) {
  const fill = style.dim ? '#8b949e' : style.color;
  const more = `${style.bold ? ' font-weight="600"' : ''}${style.italic ? ' font-style="italic"' : ''}`;
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const length = `textLength="${(text.length * ACROSS).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`;
  return `<text x="${(PAD + column * ACROSS).toFixed(1)}" y="${PAD + line * DOWN + 14}" fill="${fill}"${more} ${length}>${escaped}</text>`;
}

const only = process.argv.slice(2);
for (const [name, steps] of Object.entries(PICTURES))
  if (only.length === 0 || only.includes(name)) await make(name, steps);
