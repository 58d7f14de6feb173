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
  /** Signs the document. null if the provider uses an API key. */
  readonly wallet: Wallet | null;
  /** The router's name in the signed text. */
  readonly router: string;
  readonly welcomed: (welcome: Welcome) => void;
  readonly registered: (services: readonly string[]) => void;
  readonly refused: (message: string, problems: readonly RegistrationProblem[]) => void;
  readonly replaced: () => void;
  readonly draining: () => void;
  /** The control stream failed, so the whole connection is useless. */
  readonly broken: (why: string) => void;
}

export type Welcome = Extract<GatewayMessage, { type: 'welcome' }>;

/**
 * The proxy's end of the control stream. Answers the welcome with the signed registration, and calls the callbacks for
 * the gateway's messages.
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
        // One connection gets only one signature.
        if (greeted) return;
        greeted = true;
        const welcome = readWelcome(message);
        if (welcome === null) return options.broken('the welcome of the router is not complete');
        // The provider id is part of the text that the wallet signs, so it must be the wallet's own.
        if (wallet !== null && welcome.provider !== wallet.providerId)
          return options.broken('the router identified this wallet as another provider');
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
      // Unknown messages are ignored: a newer gateway may send them.
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
        return options.broken('the router sent a line that is not JSON');
      }
      if (isObject(message)) take(message);
    },
    tooLong: () => options.broken('the router sent a line that is too long'),
  });
  stream.on('data', (chunk: Buffer) => lines.push(chunk));
  stream.on('close', () => options.broken('the router closed the control stream'));
  // The stream can already be closed when it is opened, if it was reset or the session broke at that moment.
  if (stream.destroyed || stream.closed) options.broken('the router closed the control stream');
  else stream.respond({ ':status': 200, 'content-type': 'application/jsonl' });
  return { send };
}

/** Each entry becomes a line of the log. A file has at most this many blocks. */
const LISTED_MAX = 10_000;
/** The signed text has one fact per line, so a challenge must not contain a line break. */
const CHALLENGE = /^[!-~]{1,128}$/;

/** The most of the router's words about payouts that is logged. */
const PAYOUTS_MAX = 1_000;

function readWelcome({ provider, account, challenge, version, payouts }: JsonObject): Welcome | null {
  if (typeof provider !== 'string' || typeof challenge !== 'string' || !CHALLENGE.test(challenge)) return null;
  return {
    type: 'welcome',
    provider,
    account: textOf(account),
    challenge,
    version: textOf(version),
    ...(typeof payouts === 'string' ? { payouts: payouts.slice(0, PAYOUTS_MAX) } : {}),
  };
}

function readProblem({ key, wrong, right }: JsonObject): RegistrationProblem {
  return { key: textOf(key), wrong: textOf(wrong), right: textOf(right) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]).slice(0, LISTED_MAX) : [];
