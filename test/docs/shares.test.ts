import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mask, readTree } from '../architecture/source.ts';

// The table of docs/reference/bounds.md has all that many accounts use at once. A new bound belongs into it, or below
// with the reason why it is nobody's share.

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const page = read('docs/reference/bounds.md');
const section = page.slice(page.indexOf('\n## Shares\n')).split('\n## ')[1]!;
const [head, , ...rows] = section
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
const codeOf = (row: readonly string[]): readonly string[] => row[5]!.match(/src\/[\w./-]+/g) ?? [];
const testsOf = (row: readonly string[]): readonly string[] => row[6]!.match(/test\/[\w./-]+/g) ?? [];

/** Options that bound one thing, such as a body, and no number or amount that accounts divide among them. */
const OF_ONE_THING = [
  'sign_in.lifetime_ms_max',
  'billing.run_cost_max',
  'limits.chat_body_bytes_max',
  'limits.body_bytes_max',
  'limits.media_body_bytes_max',
  'limits.upload_bytes_per_second_min',
  'limits.messages_max',
  'limits.json_depth_max',
  'limits.json_keys_max',
  'upstream.attempts_max',
  'upstream.reply_bytes_max',
  'upstream.images_reply_bytes_max',
  'upstream.price_spread_max',
  'tasks.look_ms_max',
  'media.download_bytes_per_second_min',
  'media.file_bytes_max',
  'batches.file_bytes_max',
  'batches.lines_max',
  'chains.topup_max',
  'chains.withdrawal_min',
  'chains.withdrawal_daily_max',
  'analytics.users_min',
];

/** Shares of accounts that their keys do not divide, with the reason. */
const KEYS_DIVIDE_NOT: Readonly<Record<string, string>> = {
  requests: 'a key has a rate of its own',
  'refused requests that are remembered': 'a figure of a page',
  'lists of models': 'by network as well, and an answer is a matter of milliseconds',
  'replies that are kept for repeats': 'a repeat beyond them is refused, and never charged twice',
};

/** What makes something that many use at once. */
const MADE_SHARED =
  /\bnew (?:NetworkBudgets|Shares|PartyShares|Places|ReadingThread|WaitingBodies|Worker|Pool)\(|\bcreate(?:Budget|Counter|StreamQuota|HeldMemory|ConnectionShares|EventTurns|PollScheduler|Attempts)\(/;
/** A number that is compared with a bound: of places that are taken, or of what waits for one. */
const COMPARED =
  /\b(?:\w*[cC]ount|taken|running|active|waiting|pending|open|making|underWay|jobs|queue|slots)(?:\.(?:size|length|all))? >=? [A-Z][A-Z0-9_]*\b/;
/** Files with such a number that accounts do not divide among them. */
const NOT_SHARED: Readonly<Record<string, string>> = {
  'src/providers/ai-sdk/worker/images.ts': 'images of one request',
  'src/mcp/call/tool-target.ts': 'tools of one service',
  'src/mcp/wire/param-headers.ts': 'headers of one schema',
  'src/openai/messages/message-blocks.ts': 'deltas of one stream',
  'src/openai/realtime/realtime-session.ts': 'responses of one session',
  'src/openai/stream/event-forms.ts': 'events of one stream',
  'src/openai/tool-loop/server-tools.ts': 'tools of one request',
  'src/foundation/security/safe-text.ts': 'members of one value',
};

describe('the table of shares', () => {
  it('has its columns in every row', () => {
    expect(head).toEqual([
      'what is shared',
      'bound',
      'share of one account',
      'without money',
      'order, and what comes beyond it',
      'code',
      'tests',
    ]);
    expect(rows.length).toBeGreaterThan(40);
    expect(rows.filter((row) => row.length !== 7 || row.slice(0, 4).some((cell) => cell === ''))).toEqual([]);
  });

  it.each(rows.map((row) => [row[0]!, row] as const))('%s: its code and its tests exist', (_name, row) => {
    expect(codeOf(row)).not.toEqual([]);
    expect(testsOf(row)).not.toEqual([]);
    expect([...codeOf(row), ...testsOf(row)].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('has a share for each key where it has one for each account', () => {
    const whole = rows
      .filter((row) => {
        const share = `${row[1]} | ${row[2]}`;
        return (
          /by account|of (?:one|an|the) account/.test(share) &&
          !/by (?:key|member) within|shares of its keys/.test(share)
        );
      })
      .map((row) => row[0]!);
    expect(whole).toEqual(Object.keys(KEYS_DIVIDE_NOT));
  });

  it('has every option that bounds a number, an amount or a rate', () => {
    const options = [...read('docs/reference/configuration.md').matchAll(/^\| `([a-z_]+\.[a-z0-9_]+)` \|/gm)].map(
      ([, name]) => name!,
    );
    const bounds = options.filter((name) => /(?:_max|_min|_at_once|_per_minute|_per_second)$/.test(name));
    expect(bounds.length).toBeGreaterThan(40);
    const named = new Set([...section.matchAll(/`([a-z_]+\.[a-z0-9_]+)`/g)].map(([, name]) => name!));
    expect(bounds.filter((name) => !named.has(name) && !OF_ONE_THING.includes(name))).toEqual([]);
    expect(OF_ONE_THING.filter((name) => named.has(name))).toEqual([]);
    expect(OF_ONE_THING.filter((name) => !options.includes(name))).toEqual([]);
  });

  it('has every pool, queue and counter of the code', () => {
    const known = new Set(rows.flatMap(codeOf));
    const shared = readTree(['src'], ['.ts'])
      .filter(({ path }) => !/^src\/(?:program\/(?:cli|demo)|providers\/proxy)\//.test(path))
      .filter(({ text }) => {
        const { code } = mask(text);
        return MADE_SHARED.test(code) || COMPARED.test(code);
      })
      .map(({ path }) => path);
    expect(shared.length).toBeGreaterThan(20);
    expect(shared.filter((path) => !known.has(path) && NOT_SHARED[path] === undefined)).toEqual([]);
    expect(Object.keys(NOT_SHARED).filter((path) => !shared.includes(path))).toEqual([]);
  });
});
