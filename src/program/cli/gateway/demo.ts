import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { MICRO_PER_USD, parseRates } from '#billing';
import type { ServiceConfig } from '#config';
import { CliError } from '../terminal.ts';
import { localModel } from './local-providers.ts';

/** The process of the demo provider, and the services that it offers. */
export interface Demo {
  readonly services: readonly ServiceConfig[];
  /** `listener` is called once if the process ends before `close`. */
  onExit(listener: (reason: string) => void): void;
  close(): Promise<void>;
}

const START_MS = 10_000;

const MODELS = [
  {
    name: 'demo/sage',
    displayName: 'Demo: Sage',
    prompt: '0.5',
    completion: '1.5',
    inputModalities: ['text', 'image'],
  },
  { name: 'demo/echo', displayName: 'Demo: Echo', prompt: '0.1', completion: '0.2', inputModalities: ['text'] },
] as const;

/** A tool of the demo, with arguments: the first call to try. */
export const FIRST_TOOL_CALL = { service: 'demo/toolbox', name: 'roll_dice', arguments: { dice: '2d6' } } as const;

/** The demo's agent, with a message: the first call to try. */
export const FIRST_MESSAGE = { service: 'demo/croupier', text: 'Roll 2d6' } as const;

/**
 * Starts the demo provider in its own process. It is a provider like any other, reached over HTTP. It ends when this
 * process ends.
 */
export async function startDemo(): Promise<Demo> {
  const program = fileURLToPath(new URL('../../demo/provider.ts', import.meta.url));
  // Detached, because a Ctrl-C in the terminal must not end it while the gateway lets running calls finish. It ends
  // when its input ends.
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  // Errors of writing to an ended process are ignored, because `exit` reports the end.
  child.stdin.on('error', () => {});
  const exited = once(child, 'exit').then(([code, signal]: unknown[]) =>
    signal ? `signal ${String(signal)}` : `exit code ${String(code)}`,
  );
  const lines = createInterface({ input: child.stdout });

  let timer: NodeJS.Timeout | undefined;
  const addresses = await Promise.race([
    once(lines, 'line').then(([line]: unknown[]) => readAddresses(String(line))),
    exited.then((reason) =>
      Promise.reject(new CliError(`The demo provider ended while it started (${reason}). What it wrote is above.`)),
    ),
    new Promise<never>((_resolve, reject) => {
      timer = setTimeout(
        () => reject(new CliError(`The demo provider did not start within ${START_MS / 1000} s.`)),
        START_MS,
      );
    }),
  ])
    .catch((error: unknown) => {
      child.kill();
      throw error;
    })
    .finally(() => clearTimeout(timer));

  let closing = false;
  return {
    services: servicesAt(addresses),
    onExit(listener) {
      void exited.then((reason) => {
        if (!closing) listener(reason);
      });
    },
    async close() {
      closing = true;
      child.stdin.end();
      await exited;
    },
  };
}

function servicesAt({ url, toolboxUrl, croupierUrl }: Addresses): readonly ServiceConfig[] {
  return [
    ...MODELS.map(({ name, displayName, prompt, completion, inputModalities }) =>
      localModel({
        name,
        displayName,
        providerName: 'Demo',
        rates: parseRates({ prompt, completion, ...(name === 'demo/sage' ? { image: '0.0001' } : {}) }),
        facts: {
          upstreamModel: name,
          // Coding agents start with 20,000 tokens or more.
          contextLength: 131_072,
          maxOutputTokens: 4096,
          inputModalities: [...inputModalities],
        },
        url,
        apiKey: null,
      }),
    ),
    localModel({
      name: 'demo/compass',
      displayName: 'Demo: Compass',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0.02', completion: '0' }),
      facts: { upstreamModel: 'demo/compass', contextLength: 8192, outputModalities: ['embeddings'] },
      url,
      apiKey: null,
    }),
    localModel({
      name: 'demo/herald',
      displayName: 'Demo: Herald',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0', completion: '0', character: '10' }),
      facts: { upstreamModel: 'demo/herald', contextLength: 8192, outputModalities: ['speech'] },
      url,
      apiKey: null,
    }),
    localModel({
      name: 'demo/scribe',
      displayName: 'Demo: Scribe',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0', completion: '0', second: '0.0001' }),
      facts: {
        upstreamModel: 'demo/scribe',
        contextLength: 8192,
        inputModalities: ['audio'],
        outputModalities: ['transcription'],
      },
      url,
      apiKey: null,
    }),
    {
      service: {
        primitive: 'image',
        name: 'demo/easel',
        displayName: 'Demo: Easel',
        providerName: 'Demo',
        description: 'Paints a tollgate in a landscape that the prompt and the seed choose.',
        rates: parseRates({ image: '0.002' }),
        variants: { '2K': parseRates({ image: '0.004' }) },
        media: {
          upstreamModel: 'demo/easel',
          supportedParams: ['seed'],
          aspectRatios: [],
          formats: ['png'],
          resolutions: ['1K', '2K'],
          durations: [],
          imageApi: { wire: 'openai', edits: true, body: 'multipart' },
        },
      },
      target: { kind: 'http', url, apiKey: null },
    },
    {
      service: {
        primitive: 'video',
        name: 'demo/projector',
        displayName: 'Demo: Projector',
        providerName: 'Demo',
        description: 'Films a tollgate that opens while the sun rises.',
        rates: parseRates({ second: '0.002', call: '0.001' }),
        variants: {
          '480p': parseRates({ second: '0.001', call: '0.001' }),
          '720p': parseRates({ second: '0.002', call: '0.001' }),
        },
        media: {
          upstreamModel: 'demo/projector',
          supportedParams: ['seed'],
          aspectRatios: ['16:9', '9:16', '1:1'],
          formats: [],
          resolutions: ['480p', '720p'],
          durations: ['2s', '4s', '6s'],
        },
      },
      target: { kind: 'http', url, apiKey: null },
    },
    {
      service: {
        primitive: 'tool',
        name: FIRST_TOOL_CALL.service,
        displayName: 'Demo: Toolbox',
        providerName: 'Demo',
        description: 'Small tools to try calls with: they roll dice, tell the time, and weigh words.',
        rates: parseRates({ call: '0.001' }),
        variants: {},
        priceCap: null,
      },
      target: { kind: 'http', url: toolboxUrl, apiKey: null },
    },
    {
      service: {
        primitive: 'agent',
        name: FIRST_MESSAGE.service,
        displayName: 'Demo: Croupier',
        providerName: 'Demo',
        description:
          'Rolls dice by calling demo/toolbox, has demo/sage comment on them, and pays both from the budget of the message.',
        rates: parseRates({ call: '0.002' }),
        variants: {},
        priceCap: null,
        agent: {
          cardPath: '/.well-known/agent-card.json',
          rpcPath: null,
          chargedPer: 'message',
          nestedMax: MICRO_PER_USD / 100n,
        },
      },
      target: { kind: 'http', url: croupierUrl, apiKey: null },
    },
  ];
}

const ADDRESSES = ['url', 'toolboxUrl', 'croupierUrl'] as const;
type Addresses = Readonly<Record<(typeof ADDRESSES)[number], string>>;

function readAddresses(line: string): Addresses {
  try {
    const addresses = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (ADDRESSES.every((name) => URL.canParse(String(addresses[name])))) return addresses as Addresses;
  } catch {
    // The error is thrown below.
  }
  throw new CliError(`The demo provider wrote something else than its addresses: ${line.slice(0, 200)}`);
}
