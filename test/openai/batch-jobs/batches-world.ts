import { randomBytes, randomUUID } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { DatabaseError, type Database, type Row } from '#store';
import { audit, createGiveBack, createLedger, createPriceBook, createRefunds } from '#billing/compose';
import { escrowOf, LedgerUnavailable, treasuryOf, type Ledger } from '#billing';
import { priceId } from '#billing/amounts';
import { createRuns } from '#call/compose';
import {
  createBatches,
  createBatchMoney,
  createFiles,
  createSealedContent,
  ProviderQueues,
  type Batch,
  type LineCalls,
} from '#batch-jobs';
import { Places } from '#wire';
import type { SealedContent } from '../../../src/openai/batch-jobs/sealed-content.ts';
import { Claim, NotNow } from '../../../src/openai/batch-jobs/claim.ts';

import { workOnBatch, type WorkDeps } from '../../../src/openai/batch-jobs/work-on-batch.ts';
import { createHttpUpstream } from '#network';
import type { Offer } from '#catalog';
import { createProviderBatchApi } from '#openai';
import { startBatchProvider, type BatchProvider } from '../../support/batch-provider.ts';
import { openEngine, type EngineName } from '../../support/engines.ts';

/* Batches on a database without a gateway. Their lines are calls of a model that costs a fixed amount. */

/** Of one line, in micro-USD, and what is locked for it. */
export const PRICE = 60n;
export const ESTIMATE = 200n;
export const FUNDS = 1_000_000n;
export const ACCOUNT = 'alice';
const HOUR_MS = 3_600_000;
const ENDPOINT = '/v1/chat/completions';
export const LIMITS = {
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  linesMax: 100,
  lineBytesMax: 64 * 1024,
  replyBytesMax: 64 * 1024,
  resultBytesMax: 1024 * 1024,
  providerBytesMax: 64 * 1024,
};
/** The offer whose provider gets its lines in a batch. */
const OFFER = 'model/provider-a:acme/model';
/** The pause between two looks at a batch of the provider. */
export const LOOK_MS = 30_000;

const rates = { call: PRICE * 1_000_000n };
const price = { id: priceId('provider-a', 'acme/model', rates), rates, provider: 'provider-a', service: 'acme/model' };

const CLAIM = {
  name: 'test/claim',
  text: 'UPDATE batches SET claim = $2 WHERE id = $1 AND due_at IS NOT NULL RETURNING id',
};
const HELD = { name: 'test/held', text: "SELECT id FROM locks WHERE state = 'held'" };
const CHARGES = {
  name: 'test/charges',
  text: "SELECT charged, EXISTS (SELECT 1 FROM transfers WHERE transfers.id = 'refund:' || locks.id AND amount = charged) AS is_back FROM locks WHERE parent = $1 AND state = 'settled' AND charged > 0",
};

const isBack = (row: Row) => Boolean(Number(row['is_back']));

/** A life that ends after so many steps: of the database and of the ledger, none of the rest has an effect. */
export class Life {
  #left: number;
  #onEnd: () => void = () => {};

  constructor(steps: number) {
    this.#left = steps;
  }

  onEnd(end: () => void): void {
    this.#onEnd = end;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  step<T>(run: () => Promise<T>, error: () => Error): Promise<T> {
    this.#left -= 1;
    if (this.#left >= 0) return run();
    this.#onEnd();
    return Promise.reject(error());
  }
}

const gone = () => new DatabaseError('killed', { code: 'killed', unavailable: true });

function databaseOf(database: Database, life: Life): Database {
  return {
    ...database,
    query: (...of) => life.step(() => database.query(...of), gone),
    batch: (...of) => life.step(() => database.batch(...of), gone),
  };
}

function ledgerOf(ledger: Ledger, life: Life): Ledger {
  const dead = () => new LedgerUnavailable('killed');
  return {
    ...ledger,
    find: (...of) => life.step(() => ledger.find(...of), dead),
    lock: (...of) => life.step(() => ledger.lock(...of), dead),
    keep: (...of) => life.step(() => ledger.keep(...of), dead),
    settle: (...of) => life.step(() => ledger.settle(...of), dead),
    release: (...of) => life.step(() => ledger.release(...of), dead),
    transfer: (...of) => life.step(() => ledger.transfer(...of), dead),
  };
}

/** Comes before the request by which a provider creates a batch. */
type Creating = (create: () => Promise<string>) => Promise<string>;

export interface BatchWorld {
  readonly clock: { now: number };
  /** Those of the gateways that begin to work from now on. */
  limits: typeof LIMITS;
  /** The provider of the lines of `heldLineOf`. Its batches end as soon as they are looked at. */
  readonly provider: BatchProvider;
  /** Whether the offer has a price for batches. Without one, lines of `heldLineOf` are called one by one. */
  takesBatches: boolean;
  /** Ids of calls, in the order in which their model was asked. */
  readonly asked: string[];
  /** Those that were made one by one. */
  readonly single: string[];
  readonly ledger: Ledger;
  /** The calls of a gateway that lives. */
  readonly calls: LineCalls;
  /** Ends of batches that others were told of. */
  readonly told: string[];
  /** Stores lines and creates a batch of them. */
  create(lines: readonly unknown[], more?: { readonly maxCost?: bigint }): Promise<Batch>;
  find(id: string): Promise<Batch>;
  /** Claims the batch, and works on it until its end, or that of the life. Resolves with whether it lived. */
  work(id: string, life?: Life, calls?: Partial<LineCalls>, creating?: Creating): Promise<boolean>;
  /** The gateways get another identity, so nothing that was sealed before can be read. */
  changeIdentity(): void;
  /** Removes what has expired. */
  sweep(): Promise<void>;
  /** Its consumer cancels the batch, at the gateway that works on it or at another one. False if it is too late. */
  cancel(id: string, where: 'here' | 'elsewhere'): Promise<boolean>;
  /** The operator ends the batch, at the gateway that works on it. False if it has ended. */
  end(id: string): Promise<boolean>;
  /** Another gateway claims the batch. */
  steal(id: string): Promise<void>;
  results(batch: Batch): Promise<{ readonly output: readonly Result[]; readonly errors: readonly Result[] }>;
  /** The amounts that the lines of a batch were charged, and that were not given back. */
  charges(batch: Batch): Promise<readonly bigint[]>;
  /** How many charges of its lines were given back. */
  givenBack(batch: Batch): Promise<number>;
  /** Fails the test unless nothing is locked, this much was spent, and the books are in order. */
  spent(amount: bigint): Promise<void>;
}

export interface Result {
  readonly custom_id: string;
  readonly response: { readonly status_code: number } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export const lineOf = (customId: string) => ({
  custom_id: customId,
  method: 'POST',
  url: ENDPOINT,
  body: { model: 'acme/model' },
});

/** A line that its provider gets in a batch. */
export const heldLineOf = (customId: string) => ({
  ...lineOf(customId),
  body: { model: 'acme/model', messages: [{ role: 'user', content: customId }], held: true },
});

export async function batchWorld(engine: EngineName): Promise<BatchWorld> {
  const clock = { now: 1_700_000_000_000 };
  const now = () => clock.now;
  const opened = await openEngine(engine);
  const { database } = opened;
  const ledger = await createLedger({ database, now });
  onTestFinished(async () => {
    await ledger.close();
    await opened.dispose();
  });
  await createPriceBook(database, now).remember([price]);
  const provider = await startBatchProvider();
  provider.isEager = true;
  const upstream = createHttpUpstream({ headTimeoutMs: 30_000, idleTimeoutMs: 30_000, connectionsMax: 10 });
  onTestFinished(async () => {
    await upstream.close();
    await provider.stop();
  });
  const headers = { authorization: 'Bearer upstream-secret-canary' };
  const offer = {
    provider: { id: 'provider-a', name: 'Acme' },
    endpoint: { kind: 'direct', baseUrl: provider.url, headers, batches: true },
    variants: { batch: price },
  } as unknown as Offer;
  const api = createProviderBatchApi({
    upstream: { send: (_endpoint, ...of) => upstream.send(offer.endpoint as never, ...of) },
    offerOf: () => (world.takesBatches ? offer : { ...offer, variants: {} }),
  });
  const from = treasuryOf('test');
  await ledger.transfer({ id: 'fund', from, to: escrowOf(ACCOUNT), amount: FUNDS, memo: 'test' });
  let sealed = createSealedContent(randomBytes(32));
  const content: SealedContent = {
    seal: (...of) => sealed.seal(...of),
    open: (...of) => sealed.open(...of),
    pieces: (...of) => sealed.pieces(...of),
    sealText: (...of) => sealed.sealText(...of),
    openText: (...of) => sealed.openText(...of),
  };
  const fileLimits = { fileBytesMax: 1e6, accountBytesMax: 1e9, accountCountMax: 1_000, bytesMax: 1e9 };
  const files = createFiles({ database, content, limits: fileLimits, now });
  const nothing = () => {};
  /** By their batches: the claims of the gateways that claimed last. */
  const claims = new Map<string, Claim>();
  const rest = { liveMax: 1_000, keepMs: HOUR_MS, now, onCreated: nothing };
  const batches = createBatches({
    database,
    content,
    ...rest,
    onCancelled: (id, ended) => claims.get(id)?.cancel(ended),
  });
  const elsewhere = createBatches({ database, content, ...rest, onCancelled: nothing });
  const owner = { account: ACCOUNT, within: null };
  const asked: string[] = [];
  const single: string[] = [];
  const told: string[] = [];

  /** As a gateway calls a model: locks, asks, settles. */
  const callsOn = (books: Ledger): LineCalls => ({
    measure: async () => ({ most: ESTIMATE, model: 'acme/model' }),
    async call({ account }, body, id, parent) {
      const expiresAt = clock.now + HOUR_MS;
      const lock = { id, account, amount: ESTIMATE, prices: [price.id], expiresAt, parent, detail: '{}' };
      const locked = await books.lock(lock);
      if (!locked.ok) return { status: 402, requestId: id, body: '{"error":{}}' };
      if (body.includes('"held":true') && world.takesBatches) {
        await books.keep(id, clock.now + 48 * HOUR_MS);
        return { offer: OFFER, path: '/chat/completions', body: Buffer.from(body.replace(',', ',\r\n')) };
      }
      asked.push(id);
      single.push(id);
      // Another line takes its lock meanwhile.
      await new Promise((resolve) => setImmediate(resolve));
      const settled = { id, price: price.id, provider: 'provider-a', charge: PRICE, draw: false, feeBps: 0 };
      await books.settle({ ...settled, usage: '{"call":1}', detail: '{}' });
      return { status: 200, requestId: id, body: `{"id":"${id}","usage":{"prompt_tokens":2,"completion_tokens":3}}` };
    },
    async answer(_batch, _body, id, { status, body }) {
      asked.push(id);
      const settled = { id, price: price.id, provider: 'provider-a', charge: PRICE, draw: false, feeBps: 0 };
      await books.settle({ ...settled, usage: '{"call":1}', detail: '{}' });
      return { status, requestId: id, body };
    },
  });

  /** The provider, of which a life that is over gets nothing. */
  const providerIn = (life: Life, creating: Creating): WorkDeps['provider'] => {
    const dead = () => new DatabaseError('killed', { code: 'killed', unavailable: true });
    return {
      ...api,
      upload: (...of) => life.step(() => api.upload(...of), dead),
      create: (...of) => life.step(() => creating(() => api.create(...of)), dead),
      find: (...of) => life.step(() => api.find(...of), dead),
      lookUp: (...of) => life.step(() => api.lookUp(...of), dead),
      cancel: (...of) => life.step(() => api.cancel(...of), dead),
      remove: (...of) => life.step(() => api.remove(...of), dead),
    };
  };

  const world: BatchWorld = {
    clock,
    limits: LIMITS,
    takesBatches: true,
    ledger,
    calls: callsOn(ledger),
    asked,
    single,
    told,
    provider,
    async create(lines, { maxCost } = {}) {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
      const file = await files.write(owner, {
        name: 'lines.jsonl',
        content: (async function* () {
          yield Buffer.from(text);
        })(),
        keepMs: async () => HOUR_MS,
      });
      const facts = {
        apiKey: null,
        request: null,
        dialect: 'openai',
        metadata: null,
        tags: null,
        keepMs: HOUR_MS,
        windowMs: 24 * HOUR_MS,
      } as const;
      const id = `batch_${randomUUID()}`;
      return batches.create({
        ...owner,
        ...facts,
        id,
        endpoint: ENDPOINT,
        inputFile: file.id,
        maxCost: maxCost ?? null,
      });
    },
    find: async (id) => (await batches.find(id, owner))!,
    async work(id, life = new Life(Infinity), calls = {}, creating = (create) => create()) {
      const claim = new Claim(randomUUID(), (await world.find(id)).status, () => false);
      // As a runner, which finds only batches that are due.
      if ((await database.query(CLAIM, [id, claim.id])).length === 0) return true;
      claims.set(id, claim);
      life.onEnd(() => claim.lose());
      const books = ledgerOf(ledger, life);
      const alone = engine === 'sqlite';
      const deps: WorkDeps = {
        database: databaseOf(database, life),
        files: createFiles({
          database: databaseOf(database, life),
          content,
          limits: fileLimits,
          now,
        }),
        content,
        money: createBatchMoney({
          ledger: books,
          giveBack: createGiveBack({
            ledger: books,
            refunds: createRefunds(databaseOf(database, life), books),
            onGivenBack: nothing,
          }),
          runs: createRuns({ ledger: books, now, graceMs: 0 }),
          now,
          alone,
        }),
        calls: { ...callsOn(books), ...calls },
        provider: providerIn(life, creating),
        lookMs: LOOK_MS,
        places: new Places({ total: 4, perShare: 2 }),
        queues: new ProviderQueues({ database, provider: api, bytesMax: LIMITS.providerBytesMax, now }),
        limits: world.limits,
        tell: ({ id: ended, status }) => life.step(async () => void told.push(`${ended} ${status}`), gone),
        callerOf: () => ({ account: ACCOUNT, key: null, wallet: null }),
        now,
        random: () => 0,
        onError: nothing,
      };
      for (;;)
        try {
          await workOnBatch(deps, await world.find(id), claim, nothing);
          return !life.isOver;
        } catch (error) {
          if (life.isOver) return false;
          if (!(error instanceof NotNow)) throw error;
          clock.now += error.pauseMs;
        }
    },
    changeIdentity() {
      sealed = createSealedContent(randomBytes(32));
    },
    async sweep() {
      await files.sweep(100);
      await batches.sweep(100);
    },
    cancel: async (id, where) => (where === 'here' ? batches : elsewhere).cancel(await world.find(id)),
    async end(id) {
      const { account, lockId } = await world.find(id);
      return lockId !== null && batches.end({ id, account, lockId }, 'it hung');
    },
    async steal(id) {
      await database.query(CLAIM, [id, 'another gateway']);
    },
    async results({ outputFile, errorFile }) {
      const read = async (file: string): Promise<readonly Result[]> => {
        const found = await files.find(file, owner);
        if (found === null) return [];
        const pieces: Buffer[] = [];
        for await (const piece of files.read(found)) pieces.push(piece);
        const text = Buffer.concat(pieces).toString();
        expect(Buffer.byteLength(text)).toBe(found.bytes);
        return text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as Result);
      };
      return { output: await read(outputFile), errors: await read(errorFile) };
    },
    charges: async ({ lockId }) =>
      (await database.query(CHARGES, [lockId])).flatMap((row) => (isBack(row) ? [] : [row['charged'] as bigint])),
    givenBack: async ({ lockId }) => (await database.query(CHARGES, [lockId])).filter(isBack).length,
    async spent(amount) {
      expect(await database.query(HELD)).toEqual([]);
      expect(await ledger.balance(escrowOf(ACCOUNT))).toEqual({ available: FUNDS - amount, locked: 0n });
      expect((await audit(database)).checks.filter((check) => !check.ok)).toEqual([]);
    },
  };
  return world;
}
