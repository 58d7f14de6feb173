import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Snippet } from './snippets.ts';

/** What one block of a page printed. */
export interface Printed {
  readonly snippet: Snippet;
  readonly output: string;
  /** Exit code of its last command; null where the page ended before it. */
  readonly code: number | null;
}

/** Commands that go on until they are stopped, with what they print when they are ready. */
const GOES_ON: readonly (readonly [line: RegExp, ready: string])[] = [
  [/\bllmock\b/, 'listening on'],
  [/\bprovide --config \S+$/, '"msg":"connected"|connected'],
  [/\bserve --config \S+( --(?:data|port) \S+)*$/, '"msg":"listening"'],
  [/\bcaddy run --config \S+$/, 'serving initial configuration'],
];
/** What a reader has done before, and what other tests run. */
const LEFT_OUT = /^(?:npm (?:ci|install|start|test|run)\b|git clone|cd )/;
const READY_S = 60;

/**
 * Runs a page's blocks of sh and ts in their order, in one shell, as a reader would paste them; a block of toml, or
 * of Caddy's language, whose first line is a comment with a file's name is written to that file. `replace` puts the
 * addresses and keys of this machine in.
 */
export async function runPage(
  snippets: readonly Snippet[],
  {
    dir,
    env,
    replace,
  }: { readonly dir: string; readonly env: NodeJS.ProcessEnv; readonly replace: (text: string) => string },
): Promise<readonly Printed[]> {
  const parts: { readonly snippet: Snippet; readonly script: string }[] = [];
  for (const snippet of snippets) {
    if (snippet.note.startsWith('no-run')) continue;
    const text = replace(snippet.text);
    if (snippet.language === 'toml' || snippet.language === 'caddyfile') {
      const name = /^# ([\w.-]+\.toml|Caddyfile)\n/.exec(text)?.[1];
      if (name !== undefined) await writeFile(join(dir, name), text);
    } else if (snippet.language === 'ts') {
      const name = `line-${snippet.line}.ts`;
      await writeFile(join(dir, name), text);
      parts.push({ snippet, script: `node ${name}` });
    } else if (snippet.language === 'sh') {
      const lines = text.split('\n').map((line) => (LEFT_OUT.test(line) ? ':' : inBackground(line)));
      parts.push({ snippet, script: lines.join('\n') });
    }
  }
  const script = [
    PRELUDE,
    ...parts.map(
      ({ script: own }, index) =>
        `printf '\\n${mark(index)}\\n'\n${own.trimEnd()}\nprintf '\\n${MARK} exit %s\\n' "$?"`,
    ),
  ].join('\n');
  const child = spawn('bash', ['-c', script], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(child, 'close');
  return parts.map(({ snippet }, index) => {
    const own = output.split(`\n${mark(index)}\n`)[1] ?? '';
    const [printed = '', code] = own.split(`\n${MARK} exit `);
    return { snippet, output: printed, code: code === undefined ? null : Number.parseInt(code, 10) };
  });
}

const MARK = '@@@';
const mark = (index: number) => `${MARK} ${index}`;

const CURL = JSON.stringify(join(import.meta.dirname, '../program/cli/curl.ts'));

/** Processes that go on end with the shell. Not every machine has curl and jq. */
const PRELUDE = `
pids=()
# Each in a group of its own: npx does not end what it runs.
set -m
trap 'for pid in "\${pids[@]}"; do kill -- "-$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done' EXIT
ready() {
  for _ in $(seq ${READY_S * 5}); do
    grep -qE "$2" "$1" && return 0
    kill -0 "\${pids[-1]}" 2>/dev/null || break
    sleep 0.2
  done
  cat "$1"; echo 'Error: it does not get ready'; return 1
}
command -v curl >/dev/null || curl() { NODE_EXTRA_CA_CERTS="\${CURL_CA_BUNDLE:-}" node ${CURL} "$@"; }
command -v jq >/dev/null || jq() { node -e 'let t="";process.stdin.on("data",(d)=>t+=d).on("end",()=>console.log(JSON.parse(t)[process.argv[1].slice(1)]))' "$2"; }
`;

function inBackground(line: string): string {
  const command = line.replace(/\s+#\s.*$/, '');
  const ready = GOES_ON.find(([pattern]) => pattern.test(command))?.[1];
  if (ready === undefined) return line;
  return `log=$(mktemp "$TMPDIR/log-XXXXXX"); ${command} >"$log" 2>&1 & pids+=($!); ready "$log" '${ready}'`;
}
