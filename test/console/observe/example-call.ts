import type { LockResolution } from '#billing';
import type { EndFrame } from '#billing/amounts';
import type { Call } from '#call';
import type { Offer } from '#catalog';
import type { createLogger } from '#observe';

/** An offer as the catalogue makes them. */
export function exampleOffer(service = 'demo/chat', provider = 'Demo'): Offer {
  return {
    id: `model/key-of-${provider}:${service}`,
    service,
    primitive: 'model',
    provider: { id: `key-of-${provider}`, name: provider },
    price: { id: `price-of-${provider}-${service}`, rates: { prompt: 500_000n, completion: 1_500_000n } },
    variants: {},
    priceCap: null,
    endpoint: {
      kind: 'direct',
      baseUrl: 'http://127.0.0.1:1/v1',
      headers: { authorization: 'Bearer the-key-of-the-provider' },
    },
    displayName: service,
    description: '',
    createdAt: 0,
    model: {
      upstreamModel: 'sage',
      contextLength: 8192,
      maxOutputTokens: 1024,
      inputModalities: ['text'],
      outputModalities: ['text'],
    },
    agent: null,
    media: null,
  };
}

export function exampleCall(changes: Partial<Call> = {}): Call {
  return {
    id: 'gen-1',
    primitive: 'model',
    caller: {
      account: 'tollgate:local:dev',
      key: { hash: 'h'.repeat(64), label: 'laptop', development: true, access: null },
      wallet: null,
    },
    requestId: 'req-1',
    service: 'demo/chat',
    stream: true,
    startedAt: 1_000,
    begunAt: 1_000,
    candidates: [{ offer: exampleOffer(), price: exampleOffer().price, estimate: 100n }],
    operation: null,
    free: null,
    continues: null,
    parent: null,
    lendable: 0n,
    adapter: {
      startAttempt: () => {
        throw new Error('not asked for here');
      },
    },
    stickyKey: null,
    metadata: null,
    traceparent: null,
    timeoutMs: 60_000,
    wantsReceipt: false,
    ...changes,
  };
}

/** An offer of an MCP service, for 57 micro-USD a call, of which a provider prices `dear` by itself. */
export function exampleTools(service = 'demo/weather', provider = 'Demo'): Offer {
  const price = { id: `price-of-${provider}-${service}`, rates: { call: 57_000_000n } };
  const variants = { dear: { id: `price-of-${provider}-${service}-dear`, rates: { call: 900_000_000n } } };
  return {
    ...exampleOffer(service, provider),
    id: `tool/key-of-${provider}:${service}`,
    primitive: 'tool',
    price,
    variants,
    model: null,
  };
}

/** A call of a tool; with `free` set, a request of another method. */
export function exampleToolCall(offer: Offer, tool: string | null, changes: Partial<Call> = {}): Call {
  return exampleCall({
    primitive: 'tool',
    service: offer.service,
    operation: tool,
    candidates: [{ offer, price: offer.price, estimate: 57n }],
    ...changes,
  });
}

/** How a server's answer ends, in the words of the tool's reply; `endMs` after the call's start. */
export function answeredBy(offer: Offer, finishReason: string | null, endMs = 400): EndFrame {
  return {
    type: 'end',
    price: offer.price.id,
    provider: offer.provider.id,
    providerName: offer.provider.name,
    usage: finishReason === 'complete' ? { call: 1n } : null,
    outcome: finishReason === 'complete' ? 'complete' : finishReason === 'input_required' ? 'pending' : 'free',
    estimated: false,
    detail: { finishReason, durationMs: endMs },
    result: null,
  };
}

/** What billing says of a call that was served by `offer` and settled. */
export function settledBy(offer: Offer, changes: Partial<LockResolution> = {}): LockResolution {
  return {
    state: 'settled',
    settlement: { charged: 57n, fee: 2n, drawn: 0n, shortfall: 0n },
    end: {
      type: 'end',
      price: offer.price.id,
      provider: offer.provider.id,
      providerName: offer.provider.name,
      usage: { prompt: 12n, completion: 34n },
      outcome: 'complete',
      estimated: false,
      detail: {},
      result: null,
    },
    error: null,
    clientGone: false,
    ...changes,
  };
}

type LogConfig = Parameters<typeof createLogger>[0];

export function logConfig(changes: Partial<LogConfig> = {}): LogConfig {
  return {
    mode: 'production',
    logLevel: 'trace',
    adminKey: null,
    services: [],
    databaseUrl: null,
    redisUrl: null,
    chains: [],
    cluster: { url: null, host: '127.0.0.1', port: 0, secret: null },
    alerts: { url: null, secret: null, level: 'error' },
    ...changes,
  };
}
