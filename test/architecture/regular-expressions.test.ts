import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { check } from 'recheck';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mask, readTree } from './source.ts';

/*
 * A regular expression that tries each beginning of a text to its end takes a second for 100 KB, in which all others
 * wait. recheck finds those.
 */

/** Slow ones whose texts are short or not of strangers, by file, and why. */
const JUDGED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'the text has an end: digits of an amount, the reason of a WebSocket, a name, the first words of an answer, the end of a line':
    {
      'src/billing/prices/money.ts': ['/0+$/'],
      'src/billing/prices/price-text.ts': ['/0+$/'],
      'src/server/config/blocks/price.ts': ['/0+$/'],
      'src/server/config/image-tokens.ts': [String.raw`/(?:^|[-/.:])(?:gpt-|o\d).*(?:mini|nano)/`],
      'src/server/http/message-socket.ts': [String.raw`/\uFFFD+$/`],
      'src/mcp/own/aggregate/names.ts': ['/_+$/'],
      'src/providers/proxy/forward.ts': [String.raw`/[^\s"']*$/`],
      'src/providers/proxy/stdio/message-process.ts': [
        String.raw`/[,{]\s*"id"\s*:\s*(-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\]?\s*$/`,
      ],
      'src/providers/list-prices/model-facts.ts': [
        String.raw`/dall-e|(?:^|[-/])(?:imagen|sora|veo|flux|lyria)|stable-diffusion|(?:^|[-/.])(?:gpt|chatgpt|grok)-.*(?:image|imagine)|-image(?:-|$)|nano-banana/`,
      ],
      'src/providers/list-prices/price-match.ts': [String.raw`/\d+$/`],
    },
  'an address or a key in a file, a command or the environment of the one who runs the program': {
    'src/billing/chains/ask-json.ts': [String.raw`/\/+$/`],
    'src/program/cli/connect/connection.ts': [String.raw`/\/+$/`],
    'src/program/cli/connect/formats.ts': [
      String.raw`/\s*(?:([\w-]+)|"([^"]*)"|'([^']*)')\s*(?:\.|$)/g`,
      String.raw`/^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*$/`,
    ],
    'src/program/cli/gateway/gateway-process.ts': [String.raw`/\/+$/`],
    'src/program/cli/gateway/local-providers.ts': [String.raw`/\/+$/`],
    'src/program/cli/admin/target.ts': [String.raw`/\/+$/`],
    'src/server/config/blocks/block.ts': [String.raw`/\/+$/`],
    'src/console/observe/otlp.ts': [String.raw`/\/+$/`],
    'src/foundation/security/safe-text.ts': [String.raw`/^(\w+) +(.+)$/`, '/=+$/'],
  },
  'our own text: the address of a route, a statement, metrics, a page of the guide': {
    'src/server/http/unknown-routes.ts': ['/[:*][^/]*$/'],
    'src/console/observe/calls-now.ts': [String.raw`/(\w+)="((?:[^"\\]|\\.)*)"/g`],
    'src/console/pages/guide/guide-document.ts': ['/<[^>]+>/g', '/<!--[^]*?-->/g', '/^```mermaid\\n([^]*?)^```$/gm'],
    'src/console/pages/guide/guide-pages.ts': [
      String.raw`/!?\[([^\]]*)\]\([^)]*\)/g`,
      String.raw`/^- \[[^\]]+\]\(([^)#]+)\)/gm`,
    ],
    'src/console/pages/guide/search-index.ts': ['/^```mermaid$[^]*?^```$|<!--[^]*?-->/gm'],
    'src/foundation/store/log/shared-progress.ts': [String.raw`/^\s*--.*$/gm`],
  },
};

/** A text for which a regular expression is slow; null if there is none. */
async function slowFor(pattern: string): Promise<string | null> {
  const [, source, flags] = /^\/([^]*)\/([a-z]*)$/.exec(pattern)!;
  // Without a repetition that has no end, each character is looked at a bounded number of times.
  if (!/[*+]|\{\d+,\d*\}/.test(source!)) return null;
  const { status, ...found } = await check(source!, flags!, DETERMINISTIC);
  if (status !== 'vulnerable') return null;
  const attack = 'attack' in found ? found.attack : undefined;
  if (attack === undefined) return 'an unknown text';
  // recheck counts steps, of which linear ones may be many too.
  for (let round = 0; round < ROUNDS; round++) if (!isSlow(source!, flags!, attack.string)) return null;
  return attack.pattern;
}

/**
 * Limits in steps and none in time: to recheck, a text that takes longer than its limit is an attack, so that a busy
 * machine would find attacks where there are none.
 */
const DETERMINISTIC = {
  timeout: null,
  attackTimeout: null,
  incubationTimeout: null,
  mutationTimeout: null,
  seedingTimeout: null,
  attackLimit: 30_000_000,
  randomSeed: 1,
};

/**
 * A quadratic one takes 0.5 to 5 s for the texts of recheck, and 64 times what it takes for an eighth of them; a linear
 * one takes up to 16 ms, and eight times as long. A busy machine stretches both.
 */
const SLOW_MS = 100;
const SLOW_GROWTH = 24;
const ROUNDS = 3;
const GIVEN_UP_MS = 3_000;

function isSlow(source: string, flags: string, text: string): boolean {
  const whole = cpuOf(source, flags, text);
  if (whole < SLOW_MS) return false;
  return whole === Infinity || whole > SLOW_GROWTH * cpuOf(source, flags, text.slice(-Math.ceil(text.length / 8)));
}

/** Milliseconds of processor time that a regular expression takes for a text; Infinity if it does not end in time. */
function cpuOf(source: string, flags: string, text: string): number {
  const before = process.threadCpuUsage();
  try {
    runInNewContext('new RegExp(source, flags).exec(text)', { source, flags, text }, { timeout: GIVEN_UP_MS });
  } catch {
    return Infinity;
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

// V8 no longer optimises regular expressions once a process has compiled a megabyte of them, as a gateway does in its
// first hours. Some that pass over a text in no time until then are quadratic from there on.
beforeAll(() => setFlagsFromString('--no-regexp-optimization'));
afterAll(() => setFlagsFromString('--regexp-optimization'));

test('a slow regular expression is found', async () => {
  expect(await slowFor(String.raw`/\/+$/`)).toContain('repeat');
  expect(await slowFor(String.raw`/^(a|a)*$/`)).toContain('repeat');
  expect(await slowFor(String.raw`/^\/+$/`)).toBeNull();
  expect(await slowFor(String.raw`/(?<=(?:^|[^\\])(?:\\\\)*)\\u0000/g`)).toContain('repeat');
});

test(
  'every regular expression of src takes a time that grows with its text, or is judged',
  { timeout: 600_000 },
  async () => {
    const files = readTree(['src'], ['.ts']).filter(({ path }) => !path.startsWith('src/program/demo/'));
    const judged = new Map(Object.values(JUDGED).flatMap((one) => Object.entries(one)));
    const known = new Map<string, Promise<string | null>>();
    const slow: string[] = [];
    let count = 0;
    const unused = new Set([...judged].flatMap(([path, patterns]) => patterns.map((one) => `${path} ${one}`)));
    for (const { path, text } of files)
      for (const { value } of mask(text).patterns) {
        count++;
        if (judged.get(path)?.includes(value)) {
          unused.delete(`${path} ${value}`);
          continue;
        }
        let found = known.get(value);
        if (found === undefined) known.set(value, (found = slowFor(value)));
        const fault = await found;
        if (fault !== null) slow.push(`${path}: ${value}, for example with ${fault}`);
      }
    expect(count).toBeGreaterThan(500);
    expect(slow).toEqual([]);
    expect([...unused]).toEqual([]);
  },
);
