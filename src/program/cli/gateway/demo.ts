import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { MICRO_PER_USD, parseRates } from '#billing';
import type { ServiceConfig } from '#config';
import { CliError } from '../terminal.ts';
import { localModel } from './local-providers.ts';

export interface Demo {
  readonly services: readonly ServiceConfig[];
  /** `listener` is called once if the process ends before `close`. */
  onExit(listener: (reason: string) => void): void;
  close(): Promise<void>;
}

const START_MS = 10_000;

const MODELS = [
  {
    name: 'demo/chat',
    displayName: 'Demo: Chat',
    prompt: '0.5',
    completion: '1.5',
    inputModalities: ['text', 'image'],
  },
  { name: 'demo/echo', displayName: 'Demo: Echo', prompt: '0.1', completion: '0.2', inputModalities: ['text'] },
] as const;

/** A tool of the demo, with arguments: the first call to try. */
export const FIRST_TOOL_CALL = { service: 'demo/tools', name: 'roll_dice', arguments: { dice: '2d6' } } as const;

/** The demo's agent, with a message: the first call to try. */
export const FIRST_MESSAGE = { service: 'demo/agent', text: 'Roll 2d6' } as const;

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
    services: servicesAt(addresses).map((one) => {
      const formerName = FORMER_NAMES[one.service.name];
      return formerName === undefined ? one : { ...one, formerName };
    }),
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

/** Names of the services before 0.1.0, by which scripts may still call them. */
const FORMER_NAMES: Readonly<Record<string, string>> = {
  'demo/chat': 'demo/sage',
  'demo/embedding': 'demo/compass',
  'demo/speech': 'demo/herald',
  'demo/transcription': 'demo/scribe',
  'demo/image': 'demo/easel',
  'demo/video': 'demo/projector',
  'demo/tools': 'demo/toolbox',
  'demo/agent': 'demo/croupier',
};

function servicesAt({ url, toolsUrl, agentUrl }: Addresses): readonly ServiceConfig[] {
  return [
    ...MODELS.map(({ name, displayName, prompt, completion, inputModalities }) =>
      localModel({
        name,
        displayName,
        providerName: 'Demo',
        rates: parseRates({ prompt, completion, ...(name === 'demo/chat' ? { image: '0.0001' } : {}) }),
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
      name: 'demo/embedding',
      displayName: 'Demo: Embedding',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0.02', completion: '0' }),
      facts: { upstreamModel: 'demo/embedding', contextLength: 8192, outputModalities: ['embeddings'] },
      url,
      apiKey: null,
    }),
    localModel({
      name: 'demo/speech',
      displayName: 'Demo: Speech',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0', completion: '0', character: '10' }),
      facts: { upstreamModel: 'demo/speech', contextLength: 8192, outputModalities: ['speech'] },
      url,
      apiKey: null,
    }),
    localModel({
      name: 'demo/transcription',
      displayName: 'Demo: Transcription',
      providerName: 'Demo',
      rates: parseRates({ prompt: '0', completion: '0', second: '0.0001' }),
      facts: {
        upstreamModel: 'demo/transcription',
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
        name: 'demo/image',
        displayName: 'Demo: Image',
        providerName: 'Demo',
        description: 'Paints a tollgate in a landscape that the prompt and the seed choose.',
        rates: parseRates({ image: '0.002' }),
        variants: { '2K': parseRates({ image: '0.004' }) },
        media: {
          upstreamModel: 'demo/image',
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
        name: 'demo/video',
        displayName: 'Demo: Video',
        providerName: 'Demo',
        description: 'Films a tollgate that opens while the sun rises.',
        rates: parseRates({ second: '0.002', call: '0.001' }),
        variants: {
          '480p': parseRates({ second: '0.001', call: '0.001' }),
          '720p': parseRates({ second: '0.002', call: '0.001' }),
        },
        media: {
          upstreamModel: 'demo/video',
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
        displayName: 'Demo: Tools',
        providerName: 'Demo',
        description: 'Small tools to try calls with: they roll dice, tell the time, and weigh words.',
        rates: parseRates({ call: '0.001' }),
        variants: {},
        priceCap: null,
      },
      target: { kind: 'http', url: toolsUrl, apiKey: null },
    },
    {
      service: {
        primitive: 'agent',
        name: FIRST_MESSAGE.service,
        displayName: 'Demo: Agent',
        providerName: 'Demo',
        description:
          'Rolls dice by calling demo/tools, has demo/chat comment on them, and pays both from the budget of the message.',
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
      target: { kind: 'http', url: agentUrl, apiKey: null },
    },
  ];
}

const ADDRESSES = ['url', 'toolsUrl', 'agentUrl'] as const;
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
