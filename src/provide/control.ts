import { createHash } from 'node:crypto';
import type { ServerHttp2Stream } from 'node:http2';
import { createLines, isObject, type JsonObject } from '#wire';
import {
  CONTROL_LINE_BYTES_MAX,
  registrationText,
  type GatewayMessage,
  type ProxyMessage,
  type RegistrationProblem,
} from '#network/tunnel';
import type { Wallet } from './wallet/wallet.ts';

interface ControlOptions {
  readonly stream: ServerHttp2Stream;
  /** Text of the registration document. */
  readonly document: string;
  /** Signs the document; null where the provider came with an API key. */
  readonly wallet: Wallet | null;
  /** The router as the signed text names it. */
  readonly router: string;
  readonly welcomed: (welcome: Welcome) => void;
  readonly registered: (services: readonly string[]) => void;
  readonly refused: (message: string, problems: readonly RegistrationProblem[]) => void;
  readonly replaced: () => void;
  readonly draining: () => void;
  /** The stream cannot be used: the connection is of no use either. */
  readonly broken: (why: string) => void;
}

export type Welcome = Extract<GatewayMessage, { type: 'welcome' }>;

/**
 * The proxy's end of the control stream: answers the welcome with the signed registration and tells what the
 * gateway says to it.
 */
export function answerControl(options: ControlOptions): { send(message: ProxyMessage): void } {
  const { stream, wallet, document } = options;
  const send = (message: ProxyMessage) => {
    if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
  };

  async function register({ provider, challenge }: Welcome): Promise<void> {
    const digest = createHash('sha256').update(document).digest('hex');
    const text = registrationText({ router: options.router, provider, challenge, digest });
    send({
      type: 'register',
      document,
      router: options.router,
      signature: wallet === null ? null : await wallet.sign(text),
    });
  }

  let greeted = false;
  let registered = false;

  function take(message: JsonObject): void {
    switch (message['type']) {
      case 'welcome': {
        // One connection gets one signature.
        if (greeted) return;
        greeted = true;
        const welcome = readWelcome(message);
        if (welcome === null) return options.broken('the welcome of the router is not complete');
        // Its provider is the text that the wallet signs as its own.
        if (wallet !== null && welcome.provider !== wallet.providerId)
          return options.broken('the router takes this wallet for another provider');
        options.welcomed(welcome);
        register(welcome).catch((error: unknown) =>
          options.broken(`the registration could not be signed: ${String(error)}`),
        );
        return;
      }
      case 'registered':
        if (registered) return;
        registered = true;
        return options.registered(listOf(message['services']).filter((name) => typeof name === 'string'));
      case 'refused':
        return options.refused(
          textOf(message['message']),
          listOf(message['problems']).filter(isObject).map(readProblem),
        );
      case 'replaced':
        return options.replaced();
      case 'draining':
        return options.draining();
      // What a newer gateway says beyond this is not meant for this proxy.
      default:
    }
  }

  const lines = createLines({
    bytesMax: CONTROL_LINE_BYTES_MAX,
    line(text) {
      let message: unknown;
      try {
        message = JSON.parse(text);
      } catch {
        return options.broken('the router said something that is not JSON');
      }
      if (isObject(message)) take(message);
    },
    tooLong: () => options.broken('the router said too long a line'),
  });
  stream.on('data', (chunk: Buffer) => lines.push(chunk));
  stream.on('close', () => options.broken('the router closed the control stream'));
  // One that was reset, or whose session broke, in the moment that it was opened cannot be answered.
  if (stream.destroyed || stream.closed) options.broken('the router closed the control stream');
  else stream.respond({ ':status': 200, 'content-type': 'application/jsonl' });
  return { send };
}

/** Lines in the log are made of these: as many as a file has blocks. */
const LISTED_MAX = 10_000;
/** The text that is signed is one line a fact. */
const CHALLENGE = /^[!-~]{1,128}$/;

function readWelcome({ provider, account, challenge, version }: JsonObject): Welcome | null {
  if (typeof provider !== 'string' || typeof challenge !== 'string' || !CHALLENGE.test(challenge)) return null;
  return { type: 'welcome', provider, account: textOf(account), challenge, version: textOf(version) };
}

function readProblem({ key, wrong, right }: JsonObject): RegistrationProblem {
  return { key: textOf(key), wrong: textOf(wrong), right: textOf(right) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]).slice(0, LISTED_MAX) : [];
