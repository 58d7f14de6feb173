import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { nextClientGone } from '../../support/client-gone.ts';
import { modelBlock, type Generation, type Spine } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { STREAMED_WIRES, type StreamedWire } from './streamed-wires.ts';
import { type AskedVendor, MANNERS, type Manner, REPORTED, startVendor, WORDS_MAX } from './vendor-that-is-left.ts';

/*
 * A client stops a stream, on each wire, at vendors of five manners. Its request is ended within a second, and it costs
 * what had come until then. A vendor that does not stop is read on. Prints the table.
 */

/** A vendor of which the block says `stops = false` goes on too, and one behind a tunnel stops. */
const UPSTREAMS = [...MANNERS, 'is read on', 'is a tunnel'] as const;
type UpstreamName = (typeof UPSTREAMS)[number];

const mannerOf = (upstream: UpstreamName): Manner =>
  upstream === 'is read on' ? 'goes on' : upstream === 'is a tunnel' ? 'stops' : upstream;
const modelOf = (wire: StreamedWire, upstream: UpstreamName): string =>
  `${upstream === 'is a tunnel' ? 'far' : upstream === 'is read on' ? 'deaf' : 'own'}/${wire.name}`;

const blockOf = (side: string, { name, lines = '', pricing = '', params = '', noTokens }: StreamedWire, url: string) =>
  modelBlock({
    name: `${side}/${name}`,
    provider: side,
    url,
    lines: `${lines}\n${side === 'deaf' ? 'stops = false' : ''}`,
    pricing,
    params,
    ...(noTokens ? { prompt: 0, completion: 0 } : {}),
  });

interface Row {
  readonly wire: string;
  readonly upstream: UpstreamName;
  /** Words that the client had got, that the vendor could write until its end, and that it made. */
  readonly got: number;
  readonly asked: AskedVendor;
  readonly endedMs: number;
  readonly stops: string | null;
  readonly record: Generation;
}

test('a client that stops, on every wire, at vendors of every manner', async () => {
  const vendor = await startVendor();
  onTestFinished(() => vendor.stop());
  const { spine, dialIn } = await startTunnelSpine(
    ['own', 'deaf'].flatMap((side) => STREAMED_WIRES.map((wire) => blockOf(side, wire, vendor.url))).join(''),
  );
  await dialIn({ services: STREAMED_WIRES.map((wire) => blockOf('far', wire, vendor.url)).join('') });
  const rows: Row[] = [];
  for (const wire of STREAMED_WIRES)
    for (const upstream of UPSTREAMS)
      rows.push(await stop(spine, wire, upstream, vendor.next(wire, mannerOf(upstream))));
  console.log(tableOf(rows));
  for (const row of rows) check(row);
}, 240_000);

async function stop(
  spine: Spine,
  wire: StreamedWire,
  upstream: UpstreamName,
  begun: Promise<AskedVendor>,
): Promise<Row> {
  const leaving = new AbortController();
  const gone = nextClientGone(spine);
  const { path, body } = wire.ask(modelOf(wire, upstream));
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  const asked = await begun;
  const id = response.headers.get('x-generation-id');
  let bytes: Buffer = Buffer.alloc(0);
  for await (const piece of response.body!) {
    bytes = Buffer.concat([bytes, piece as Uint8Array]);
    if (wire.wordsIn(bytes) >= 20) break;
  }
  const left = performance.now();
  leaving.abort();
  await gone;
  asked.left(upstream === 'is read on');
  await asked.closed;
  const endedMs = performance.now() - left;
  await spine.quiet();
  await asked.idle;
  return {
    wire: wire.name,
    upstream,
    got: wire.wordsIn(bytes),
    asked,
    endedMs,
    stops: response.headers.get('x-tollgate-stops'),
    record: await spine.generation(id),
  };
}

function check({ wire, upstream, got, asked, endedMs, stops, record }: Row): void {
  const { cost_micro_usdc: cost, estimated, cancelled, tokens_prompt: prompt, tokens_completion: said } = record;
  const what = `${wire}: ${upstream}`;
  expect(stops, what).toBe(upstream === 'is read on' ? 'false' : null);
  if (upstream === 'dies') return expect(cost, what).toBe(0);
  expect(cancelled, what).toBe(true);
  if (upstream !== 'reports' && upstream !== 'is read on') {
    expect(endedMs, what).toBeLessThan(atThisLoad(1_000));
    expect(asked.written, what).toBeLessThan(WORDS_MAX);
    expect(asked.made === WORDS_MAX, what).toBe(upstream === 'goes on');
  }
  if (wire === 'speech') {
    // All characters at an own provider, and at one that dialled in those of the sound that came: 30 bytes a word.
    return upstream === 'is a tunnel' ? expect(cost, what).toBeLessThan(1_000) : expect(cost, what).toBe(1_000);
  }
  const reported = upstream === 'reports' ? REPORTED.completion : upstream === 'is read on' ? WORDS_MAX : null;
  expect(cost, what).toBe(prompt + 2 * said);
  if (reported !== null) return expect([prompt, said, estimated], what).toEqual([REPORTED.prompt, reported, false]);
  expect(prompt, what).toBeGreaterThan(0);
  expect(estimated, what).toBe(true);
  expect(said, what).toBeGreaterThanOrEqual(got);
  expect(said, what).toBeLessThanOrEqual(asked.written);
}

function tableOf(rows: readonly Row[]): string {
  const columns = (...cells: readonly (string | number)[]) =>
    cells.map((cell, at) => String(cell).padEnd(at < 2 ? 13 : 12)).join('');
  return [
    columns('wire', 'its vendor', 'ended ms', 'bytes after', 'got', 'written', 'made', 'charged µ$'),
    ...rows.map(({ wire, upstream, got, asked, endedMs, record }) =>
      columns(
        wire,
        upstream,
        Math.round(endedMs),
        asked.bytesAfter,
        got,
        asked.written,
        asked.made,
        record.cost_micro_usdc,
      ),
    ),
  ].join('\n');
}
