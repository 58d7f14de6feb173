import { afterAll, beforeAll, expect, test } from 'vitest';
import { ENDPOINTS } from '../peers/routes.ts';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { peerServices } from '../peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * A map that loses an entry with each call keeps calls in the old heap of V8 until the next full collection: decision
 * 91. So whatever is called, no `Map` or `Set` of the gateway loses one each time, but for those of `#maps`, which
 * are made for it.
 */

const CALLS = 12;
/** A video is a job of minutes, which the gateway keeps in lists of its own. */
const DOORS = ENDPOINTS.filter(({ primitive }) => primitive !== 'video');

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ toml: `${UNHURRIED}${peerServices(provider)}` });
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
});

interface Losses {
  count: number;
  readonly at: string;
}

/** Counts the entries that each map and set loses to code of `src` while `work` runs. */
async function lossesDuring(work: () => Promise<void>): Promise<readonly Losses[]> {
  const losses = new Map<object, Losses>();
  const { get, set } = Map.prototype;
  const restore = [Map.prototype, Set.prototype].map((prototype) => {
    const original = prototype.delete as (this: object, key: unknown) => boolean;
    prototype.delete = function (this: object, key: unknown) {
      const had = original.call(this, key);
      const known = get.call(losses, this) as Losses | undefined;
      if (had && known !== undefined) known.count += 1;
      else if (had) {
        const at = new Error('at').stack!.split('\n')[2]!;
        if (/\/src\/(?!foundation\/maps\.ts)/.test(at)) set.call(losses, this, { count: 1, at });
      }
      return had;
    };
    return () => (prototype.delete = original);
  });
  try {
    await work();
  } finally {
    for (const each of restore) each();
  }
  return [...losses.values()];
}

test.each(DOORS)('$name', async (door) => {
  const slug = door.name.replaceAll(/\W+/g, '-').toLowerCase();
  const { key } = await spine.tenant(`maps-${slug}`, '1');
  const call = async (number: number) => {
    const { kind } = await door.call({ origin: spine.origin, key, text: `complete ${slug} ${number}` });
    expect(kind).toBe('answered');
  };
  await call(0);
  const losses = await lossesDuring(async () => {
    for (let number = 1; number <= CALLS; number += 1) await call(number);
    await spine.quiet();
  });
  expect(losses.filter(({ count }) => count >= CALLS)).toEqual([]);
  expect(await spine.faults()).toEqual([]);
});
