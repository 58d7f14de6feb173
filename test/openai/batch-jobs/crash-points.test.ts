import { describe, expect, it } from 'vitest';
import { usualAnswer } from '../../support/batch-provider.ts';
import { ENGINES } from '../../support/engines.ts';
import { ACCOUNT, batchWorld, ESTIMATE, heldLineOf, Life, LIMITS, lineOf, PRICE } from './batches-world.ts';

const LINES = [lineOf('a'), lineOf('b'), lineOf('c')];
const IDS = ['a', 'b', 'c'];
/** More than a batch of three lines takes. */
const STEPS = 80;
/** By day, a gateway dies after each third of them. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const STRIDE = DEEP ? 1 : 3;
/** The second kill comes within so many steps, of which the first ones end what the first kill left. */
const SOON = 13;
const DAY_MS = 24 * 3_600_000;
/** The clock of a new world. */
const T0 = 1_700_000_000_000;
/** More than one takes whose lines a provider has. */
const HELD_STEPS = 100;

describe.each(ENGINES)('a gateway that dies on %s', (engine) => {
  it('after any step of a batch, and again soon, leaves what another ends: each line is answered, and charged once', async () => {
    const world = await batchWorld(engine);
    let survived = 0;
    let spent = 0n;
    let givenBack = 0;
    for (let steps = 0; steps < STEPS; steps += STRIDE) {
      const { id } = await world.create(LINES);
      if (await world.work(id, new Life(steps))) survived += 1;
      else await world.work(id, new Life(steps % SOON));
      await world.work(id);
      const batch = await world.find(id);
      expect(batch).toMatchObject({ status: 'completed', total: 3, endedAt: expect.any(Number) });
      expect(world.told, `after ${steps} steps`).toContain(`${id} completed`);
      const { output } = await world.results(batch);
      expect(output.map((line) => line.custom_id).toSorted(), `after ${steps} steps`).toEqual(IDS);
      expect([batch.completed, batch.failed]).toEqual([3, 0]);
      const charges = await world.charges(batch);
      expect(charges, `after ${steps} steps`).toEqual([PRICE, PRICE, PRICE]);
      spent += 3n * PRICE;
      givenBack += await world.givenBack(batch);
      await world.spent(spent);
    }
    // All its steps were cut, and at last none was.
    expect(survived).toBeGreaterThan(0);
    expect(survived).toBeLessThan((STEPS - 20) / STRIDE);
    // A charge is given back only if the kill came between it and the row of the result: in few of the places.
    expect(givenBack).toBeGreaterThan(0);
    expect(givenBack).toBeLessThan(STEPS / 4);
  });

  it('after any step leaves what another ends with a provider that has the lines: none is sent or charged twice', async () => {
    const world = await batchWorld(engine);
    const { provider } = world;
    let survived = 0;
    let spent = 0n;
    let filesLeft = 0;
    for (let steps = 0; steps < HELD_STEPS; steps += STRIDE) {
      provider.batches.length = 0;
      provider.files.clear();
      const { id } = await world.create(IDS.map(heldLineOf));
      if (await world.work(id, new Life(steps))) survived += 1;
      await world.work(id);
      const batch = await world.find(id);
      expect(batch, `after ${steps} steps`).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
      const { output } = await world.results(batch);
      expect(output.map((line) => line.custom_id)).toEqual(IDS);
      const sent = provider.batches.flatMap(({ lines }) => lines.map(({ body }) => body['messages']));
      expect(sent, `after ${steps} steps`).toHaveLength(3);
      expect(await world.charges(batch), `after ${steps} steps`).toEqual([PRICE, PRICE, PRICE]);
      spent += 3n * PRICE;
      await world.spent(spent);
      filesLeft += provider.files.size;
    }
    expect(survived).toBeGreaterThan(0);
    expect(survived).toBeLessThan((HELD_STEPS - 30) / STRIDE);
    // The one that was uploaded right before the gateway died.
    expect(filesLeft).toBeLessThanOrEqual(1);
  });

  it.each([
    ['bytes of a line', lineOf, { lineBytesMax: 400 }, 'line_too_long', '400 bytes (limits.chat_body_bytes_max)'],
    [
      'bytes of a line for a batch',
      heldLineOf,
      { lineBytesMax: 400 },
      'line_too_long',
      '400 bytes (limits.chat_body_bytes_max)',
    ],
    ['depth of JSON', lineOf, { jsonDepthMax: 3 }, 'invalid_json_line', 'nested deeper than 3 levels'],
  ])('after any step is followed by one with less %s: what it may not call ends with an error', async (...of) => {
    const [, line, lowered, code, words] = of;
    const world = await batchWorld(engine);
    let refused = 0;
    let spent = 0n;
    for (let steps = 0; steps < HELD_STEPS; steps += engine === 'sqlite' && DEEP ? 2 : 7) {
      const large = line('b');
      const body = { ...large.body, user: 'x'.repeat(400), deep: [[[]]] };
      world.limits = LIMITS;
      const { id } = await world.create([line('a'), { ...large, body }, line('c')]);
      await world.work(id, new Life(steps));
      // Before that, it fails as every batch with such a line.
      if ((await world.find(id)).inProgressAt !== null)
        world.limits = { ...LIMITS, ...(lowered as Partial<typeof LIMITS>) };
      await world.work(id);
      const batch = await world.find(id);
      expect(batch, `after ${steps} steps`).toMatchObject({ status: 'completed', total: 3 });
      const { output, errors } = await world.results(batch);
      expect([...output, ...errors].map((each) => each.custom_id).toSorted(), `after ${steps} steps`).toEqual(IDS);
      for (const { custom_id: name, error } of errors) {
        refused += 1;
        expect({ name, error }).toEqual({ name: 'b', error: { code, message: expect.stringContaining(words) } });
      }
      spent += (await world.charges(batch)).reduce((sum, charged) => sum + charged, 0n);
      await world.spent(spent);
    }
    expect(refused).toBeGreaterThan(0);
  });

  it('after any step is followed by one whose model takes no batches: each line is called in one way, once', async () => {
    const world = await batchWorld(engine);
    const { provider, single } = world;
    let spent = 0n;
    const ways = { single: 0, batch: 0 };
    for (let steps = 0; steps < HELD_STEPS; steps += engine === 'sqlite' && DEEP ? 1 : 4) {
      provider.batches.length = single.length = 0;
      world.takesBatches = true;
      const { id } = await world.create(IDS.map(heldLineOf));
      await world.work(id, new Life(steps));
      world.takesBatches = false;
      const at = world.clock.now;
      await world.work(id);
      const batch = await world.find(id);
      expect(batch, `after ${steps} steps`).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
      const sent = provider.batches.flatMap(({ lines }) => lines.map(({ custom_id: callId }) => callId));
      expect([0, 3], `after ${steps} steps`).toContain(sent.length);
      expect(sent.length + single.length, `after ${steps} steps`).toBe(3);
      ways[sent.length === 0 ? 'single' : 'batch'] += 1;
      // A creation whose answer did not come is looked for during a minute.
      expect(world.clock.now - at, `after ${steps} steps`).toBeLessThan(120_000);
      expect(await world.charges(batch), `after ${steps} steps`).toEqual([PRICE, PRICE, PRICE]);
      spent += 3n * PRICE;
      await world.spent(spent);
    }
    expect(ways.single).toBeGreaterThan(2);
    expect(ways.batch).toBeGreaterThan(2);
  });

  it('and comes back late charges nothing, and changes nothing', async () => {
    const world = await batchWorld(engine);
    const { id } = await world.create([lineOf('a')]);
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    let late: string | null = null;
    const frozen = world.work(id, new Life(Infinity), {
      async call(_batch, _body, callId) {
        late = callId;
        reached.resolve();
        await gate.promise;
        return { status: 200, requestId: callId, body: '{"from":"the late gateway"}' };
      },
    });
    await reached.promise;
    await world.work(id);
    gate.resolve();
    await frozen;
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'completed', completed: 1, failed: 0 });
    const { output } = await world.results(batch);
    expect(JSON.stringify(output)).not.toContain('the late gateway');
    expect(world.asked).toHaveLength(1);
    expect(world.asked).not.toContain(late);
    await world.spent(PRICE);
  });
});

it('a gateway whose batch another has claimed begins no other line, and ends none', async () => {
  const world = await batchWorld('sqlite');
  const { id } = await world.create('abcdef'.split('').map(lineOf));
  const first: string[] = [];
  await world.work(id, new Life(Infinity), {
    async call(_batch, _body, callId) {
      first.push(callId);
      await world.steal(id);
      return { status: 200, requestId: callId, body: '{}' };
    },
  });
  // As many as may run at once.
  expect(first.length).toBeLessThanOrEqual(2);
  await world.work(id);
  expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 6, failed: 0 });
  expect(world.asked).toHaveLength(6);
  await world.spent(BigInt(world.asked.length) * PRICE);
});

describe('the money of a batch', () => {
  it('bounds its lines: one that finds too little waits for what others give back', async () => {
    const world = await batchWorld('sqlite');
    // Enough for one lock at a time, and for four charges and the last lock.
    const { id } = await world.create('abcde'.split('').map(lineOf), { maxCost: 4n * PRICE + ESTIMATE });
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 5, failed: 0, amount: 440n });
    await world.spent(5n * PRICE);
  });

  it('is not missing for a line that is refused while another one gives it back', async () => {
    const world = await batchWorld('sqlite');
    const { id } = await world.create(['a', 'b'].map(lineOf), { maxCost: PRICE + ESTIMATE });
    const ended = Promise.withResolvers<void>();
    let calls = 0;
    await world.work(id, new Life(Infinity), {
      async call(...of) {
        calls += 1;
        if (calls !== 2) return world.calls.call(...of).finally(ended.resolve);
        // The answer of the refusal comes when the other line has ended.
        await ended.promise;
        await new Promise((resolve) => setImmediate(resolve));
        return { status: 402, requestId: 'b', body: '{"error":{}}' };
      },
    });
    expect(calls).toBe(3);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 2, failed: 0 });
    await world.spent(2n * PRICE);
  });

  it('ends a line that does not fit into what is left', async () => {
    const world = await batchWorld('sqlite');
    const { id } = await world.create('abc'.split('').map(lineOf), { maxCost: PRICE + ESTIMATE });
    await world.work(id);
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'completed', completed: 2, failed: 1 });
    const { errors } = await world.results(batch);
    expect(errors).toMatchObject([{ response: { status_code: 402 } }]);
    await world.spent(2n * PRICE);
  });

  it('is refused as a whole if the account has too little, and names the sum', async () => {
    const world = await batchWorld('sqlite');
    const { id } = await world.create('abc'.split('').map(lineOf));
    const most = 1_000_000n;
    await world.work(id, new Life(Infinity), { measure: async () => ({ most, model: 'acme/model' }) });
    const batch = await world.find(id);
    expect(batch.status).toBe('failed');
    expect(batch.errors).toMatchObject([
      { code: 'insufficient_balance', message: expect.stringContaining('3 USDC'), line: null },
    ]);
    expect(world.asked).toEqual([]);
    await world.spent(0n);
    expect(batch.account).toBe(ACCOUNT);
  });

  it('expires with its time: lines that had not begun get an error', async () => {
    const world = await batchWorld('sqlite');
    const { id } = await world.create(LINES);
    await world.work(id, new Life(20));
    world.clock.now += 24 * 3_600_000;
    await world.work(id);
    const batch = await world.find(id);
    expect(batch.status).toBe('expired');
    const { output, errors } = await world.results(batch);
    expect([...output, ...errors].map((line) => line.custom_id).toSorted()).toEqual(IDS);
    expect(errors.map(({ error }) => error!.code)).toContain('batch_expired');
    await world.spent(BigInt((await world.charges(batch)).length) * PRICE);
  });
});

describe('a batch that a provider has', () => {
  it('expires with its time: the provider is asked to stop, and what it has made is charged', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.isEager = false;
    provider.intercept = (method, path) => {
      const [there] = provider.batches;
      if (method === 'POST' && path.endsWith('/cancel'))
        // The next look finds it ended.
        setImmediate(() =>
          provider.end(there!, 'cancelled', (line) => (line === there!.lines[0] ? usualAnswer(line) : null)),
        );
      return undefined;
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'expired', completed: 1, failed: 2 });
    expect(world.clock.now).toBeLessThan(batch.expiresAt + 120_000);
    const { output, errors } = await world.results(batch);
    expect(output).toHaveLength(1);
    expect(errors.map(({ error }) => error!.code)).toEqual(['batch_expired', 'batch_expired']);
    expect(provider.log.filter((each) => each.endsWith('/cancel'))).toHaveLength(1);
    await world.spent(PRICE);
  });

  it('whose provider does not end it, or is away, ends half an hour after its time, free', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.isEager = false;
    const { id } = await world.create(IDS.map(heldLineOf));
    provider.intercept = (method, path) => {
      if (world.clock.now > T0 + DAY_MS && path.startsWith('/batches/')) return 'hang up';
      return undefined;
    };
    await world.work(id);
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'expired', completed: 0, failed: 3 });
    expect(world.clock.now).toBeLessThan(batch.expiresAt + 1_900_000);
    await world.spent(0n);
  });

  it('is sent again, with a new file, if the provider had no room for it', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.after = (method, path) => {
      const [first] = provider.batches;
      if (method === 'POST' && path === '/batches' && provider.batches.length === 1) {
        first!.status = 'failed';
        first!.errors = { data: [{ code: 'token_limit_exceeded', message: 'Enqueued token limit reached' }] };
      }
      return undefined;
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
    expect(provider.batches).toHaveLength(2);
    expect(world.clock.now - T0).toBeGreaterThanOrEqual(300_000);
    expect(provider.files.size).toBe(0);
    await world.spent(3n * PRICE);
  });

  it('is called one by one, if its model takes no batches any more while the provider has no room', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.after = (method, path) => {
      if (method !== 'POST' || path !== '/batches') return undefined;
      const errors = { data: [{ code: 'token_limit_exceeded', message: 'Enqueued token limit reached' }] };
      Object.assign(provider.batches[0]!, { status: 'failed', errors });
      setTimeout(() => (world.takesBatches = false));
      return undefined;
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
    expect(world.single).toHaveLength(3);
    expect(world.clock.now - T0).toBeLessThan(300_000);
    expect(provider.files.size).toBe(0);
    await world.spent(3n * PRICE);
  });

  it('is sent again later and later if the provider has no room, and is refused after the sixth time', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    const at: number[] = [];
    provider.after = (method, path) => {
      if (method !== 'POST' || path !== '/batches') return undefined;
      at.push(world.clock.now);
      const message = 'Enqueued token limit reached';
      const there = provider.batches.at(-1)!;
      Object.assign(there, { status: 'failed', errors: { data: [{ code: 'token_limit_exceeded', message }] } });
      return undefined;
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'completed', completed: 0, failed: 3 });
    const pauses = at.slice(1).map((time, i) => Math.floor((time - at[i]!) / 60_000));
    expect(pauses).toEqual([5, 10, 20, 40, 60]);
    const { errors } = await world.results(batch);
    const message = 'The provider refused the batch: Enqueued token limit reached';
    for (const { error } of errors) expect(error).toEqual({ code: 'provider_batch_failed', message });
    expect(provider.files.size).toBe(0);
    await world.spent(0n);
  });

  it.each([
    ['that it does not exist', { status: 404 }],
    ['no status', { status: 200, body: { object: 'batch' } }],
    ['a status that nobody knows', { status: 200, body: { object: 'batch', status: 'paused' } }],
    ['that it has ended without a file', { status: 200, body: { object: 'batch', status: 'completed' } }],
  ])('goes on if the provider says for some minutes %s', async (_, odd) => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    let looks = 0;
    provider.intercept = (method, path) =>
      method === 'GET' && path.startsWith('/batches/') && (looks += 1) <= 15 ? odd : undefined;
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
    expect(provider.batches).toHaveLength(1);
    expect(provider.files.size).toBe(0);
    await world.spent(3n * PRICE);
  });

  it.each([
    ['does not exist', { status: 404 }],
    ['has ended without a file', { status: 200, body: { object: 'batch', status: 'completed' } }],
  ])('ends free if the provider says for ten minutes without a break that it %s', async (_, odd) => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.isEager = false;
    let looks = 0;
    provider.intercept = (method, path) =>
      method === 'GET' && path.startsWith('/batches/') && (looks += 1) !== 15 ? odd : undefined;
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    const batch = await world.find(id);
    expect(batch).toMatchObject({ status: 'completed', completed: 0, failed: 3 });
    const { errors } = await world.results(batch);
    for (const { error } of errors) expect(error).toMatchObject({ code: 'provider_no_answer' });
    // The 15th look found it, so the ten minutes began again.
    expect(world.clock.now - T0).toBeGreaterThanOrEqual(15 * 30_000 + 600_000);
    expect(world.clock.now - T0).toBeLessThan(15 * 30_000 + 700_000);
    await world.spent(0n);
  });

  it('is not sent again as long as its file cannot be deleted and nobody knows whether it was created', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    provider.after = (method, path) => (method === 'POST' && path === '/batches' ? 'hang up' : undefined);
    provider.intercept = (method, path) => {
      // The provider is slow to list it, and deletes nothing.
      if (world.clock.now > T0 + 300_000) return undefined;
      if (path.startsWith('/batches?')) return { status: 200, body: { data: [], has_more: false } };
      return method === 'DELETE' ? { status: 503 } : undefined;
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
    expect(provider.batches).toHaveLength(1);
    expect(provider.log.some((each) => each.startsWith('DELETE'))).toBe(true);
    await world.spent(3n * PRICE);
  });

  it.each([
    ['is read again if a file of results takes longer than a quarter of an hour', 900_000, 'completed', 3],
    ['ends with its time, while a file of results never ends', DAY_MS + 1_900_000, 'expired', 0],
  ])('%s', async (_, laterMs, status, completed) => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    let reads = 0;
    provider.intercept = (_method, path) => {
      if (!path.endsWith('/content') || (reads += 1) > 1) return undefined;
      setImmediate(() => (world.clock.now += laterMs));
      return 'drip';
    };
    const { id } = await world.create(IDS.map(heldLineOf));
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status, completed, failed: 3 - completed });
    await world.spent(BigInt(completed) * PRICE);
  });

  it('that a gateway wanted to create when it froze is created once, also if that gateway comes back', async () => {
    const world = await batchWorld('sqlite');
    const { provider } = world;
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const { id } = await world.create(IDS.map(heldLineOf));
    const frozen = world.work(id, new Life(Infinity), {}, async (create) => {
      reached.resolve();
      await gate.promise;
      return create();
    });
    await reached.promise;
    await world.work(id);
    gate.resolve();
    await frozen;
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 3, failed: 0 });
    expect(provider.batches).toHaveLength(1);
    expect(provider.log.filter((each) => each === 'POST /batches')).toHaveLength(2);
    await world.spent(3n * PRICE);
  });
});
