import { expect, onTestFinished } from 'vitest';
import { dialIn, offeredModel, type DialledIn, type DialInOptions } from './dial-in.ts';
import { pauses } from './pauses.ts';
import { startProvider, type TestProvider } from './provider.ts';
import { ask, startSpine, UNHURRIED, type Spine, type SpineOptions } from './spine.ts';
import { signInHeaders, type TestWallet } from './wallets.ts';

/**
 * A gateway in this process to which providers dial in. Everything ends with the test that started it. The test fails
 * if the books are wrong at its end.
 */
export interface TunnelSpine {
  readonly spine: Spine;
  /** Starts a proxy that offers `tunnel/model` from its own upstream. */
  supply(provider: string, options?: SupplyOptions): Promise<Supplied>;
  dialIn(options: Omit<DialInOptions, 'router'> & { readonly router?: string }): Promise<DialledIn>;
  upstream(): Promise<TestProvider>;
  /** The offers of a model with their status. null if the model isn't listed. */
  endpoints(model?: string): Promise<readonly EndpointEntry[] | null>;
  /** Reads one of a provider's own pages. */
  ownPage<T>(path: string, wallet: TestWallet): Promise<T>;
}

export interface Supplied {
  readonly proxy: DialledIn;
  readonly upstream: TestProvider;
  /** `<public key>:tunnel/model`. */
  readonly pinned: string;
}

export interface SupplyOptions {
  readonly prompt?: number;
  readonly completion?: number;
  readonly wallet?: TestWallet;
  readonly upstream?: TestProvider;
  readonly router?: string;
  readonly random?: () => number;
}

export interface EndpointEntry {
  readonly provider_id: string;
  readonly provider_name: string;
  readonly health: string;
  readonly uptime_last_1h: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
  readonly compliance: number;
  readonly pricing: { readonly prompt: string; readonly completion: string };
}

/** The model that `supply` offers. */
export const TUNNEL_MODEL = 'tunnel/model';

/** A chat request for that model. `content` may contain commands for the upstream, see `provider/behaviour.ts`. */
export const askTunnel = (content: string, more: object = {}) => ask(content, { model: TUNNEL_MODEL, ...more });

/** `toml` is appended to rate limits that no test reaches. */
export async function startTunnelSpine(toml = '', options: Omit<SpineOptions, 'toml'> = {}): Promise<TunnelSpine> {
  const spine = await startSpine({ ...options, toml: `${UNHURRIED}\n${toml}` });
  let closed = false;
  const close = spine.app.close;
  Object.assign(spine.app, { close: () => ((closed = true), close()) });
  onTestFinished(async () => {
    try {
      if (!closed) expect(await spine.faults()).toEqual([]);
    } finally {
      await spine.stop();
    }
  });
  const world: TunnelSpine = {
    spine,
    async supply(provider, supply = {}) {
      const upstream = supply.upstream ?? (await world.upstream());
      const { wallet, router, random, ...price } = supply;
      const services = offeredModel({ url: upstream.url, provider, ...price });
      const proxy = await world.dialIn({
        services,
        ...(wallet ? { wallet } : {}),
        ...(router ? { router } : {}),
        ...(random ? { random } : {}),
      });
      return { proxy, upstream, pinned: `${proxy.id}:${TUNNEL_MODEL}` };
    },
    async dialIn(dial) {
      const proxy = await dialIn({ router: spine.origin, ...dial });
      onTestFinished(() => proxy.kill());
      return proxy;
    },
    async upstream() {
      const upstream = await startProvider();
      onTestFinished(() => upstream.stop());
      return upstream;
    },
    async endpoints(model = TUNNEL_MODEL) {
      const response = await spine.get(`/models/${model}/endpoints`);
      const body = (await response.json()) as { readonly data: { readonly endpoints: readonly EndpointEntry[] } };
      return response.status === 404 ? null : body.data.endpoints;
    },
    async ownPage<T>(path: string, wallet: TestWallet) {
      const response = await fetch(`${spine.url}/provider${path}`, { headers: await signInHeaders(wallet) });
      if (response.status !== 200)
        throw new Error(`/provider${path} answered ${response.status}: ${await response.text()}`);
      return (await response.json()) as T;
    },
  };
  return world;
}

/** Polls until the condition is true. Resolves with the time that it took in milliseconds. */
export async function until(condition: () => boolean | Promise<boolean>, ms = 60_000): Promise<number> {
  const begun = performance.now();
  for (const pause of pauses()) {
    if (await condition()) break;
    if (performance.now() - begun > ms) throw new Error(`not within ${ms} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return performance.now() - begun;
}

/** A streamed reply that is read while it arrives. */
export interface Reading {
  readonly response: Response;
  /** The text so far. */
  text(): string;
  /** Resolves when this many events with text of the model have arrived. */
  tokens(count: number): Promise<void>;
  /** The whole text, when the stream has ended. Rejects if the stream broke. */
  readonly end: Promise<string>;
}

export async function readStream(asked: Promise<Response>): Promise<Reading> {
  const response = await asked;
  let text = '';
  const end = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) text += decoder.decode(chunk as Uint8Array, { stream: true });
    return text;
  })();
  end.catch(() => {});
  return {
    response,
    text: () => text,
    tokens: async (count) => {
      const enough = () => text.split('"content":"').length - 1 >= count;
      await Promise.race([until(enough), end.then(() => {})]);
      if (!enough()) throw new Error(`the stream ended before ${count} tokens: ${text}`);
    },
    end,
  };
}
