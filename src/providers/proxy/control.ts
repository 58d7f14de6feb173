import { createHash } from 'node:crypto';
import type { ServerHttp2Stream } from 'node:http2';
import { BOUNDS, createLines, parseForeign, isObject, type JsonObject } from '#wire';
import {
  CONTROL_LINE_BYTES_MAX,
  registrationText,
  type RaisedPrice,
  type GatewayMessage,
  type ProxyMessage,
  type RegistrationProblem,
} from '#network/tunnel';
import type { Wallet } from './wallet/wallet.ts';

interface ControlOptions {
  readonly stream: ServerHttp2Stream;
  readonly document: () => string;
  /** Signs the document. null if the provider uses an API key. */
  readonly wallet: Wallet | null;
  /** The router's name in the signed text. */
  readonly router: string;
  readonly welcomed: (welcome: Welcome) => void;
  readonly answered: (answer: RegistrationAnswer) => void;
  readonly replaced: () => void;
  /** `banned`: the operator's reason, if the router drains the connection because the provider is banned. */
  readonly draining: (banned: string | null) => void;
  /** The control stream failed, so the whole connection is useless. */
  readonly broken: (why: string) => void;
}

export type Welcome = Extract<GatewayMessage, { type: 'welcome' }>;

/** The router's answer to one registration. A refused one leaves the earlier registration in force. */
export type RegistrationAnswer =
  | { readonly kind: 'registered'; readonly services: readonly string[]; readonly raised: readonly RaisedPrice[] }
  | { readonly kind: 'refused'; readonly message: string; readonly problems: readonly RegistrationProblem[] };

interface Control {
  send(message: ProxyMessage): void;
  /** Registers another document, after the first one was accepted. Resolves with the router's answer, if it comes. */
  register(document: string): Promise<RegistrationAnswer>;
}

/**
 * The proxy's end of the control stream. Answers the welcome with the signed registration, and calls the callbacks for
 * the gateway's messages.
 */
export function answerControl(options: ControlOptions): Control {
  const { stream, wallet } = options;
  const send = (message: ProxyMessage) => {
    if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
  };

  let welcome: Welcome | null = null;
  /** The router answers registrations in their order. */
  const waiting: ((answer: RegistrationAnswer) => void)[] = [];
  const answer = (result: RegistrationAnswer) => {
    // A router may also refuse a provider without being asked: before its services came, or later.
    const unasked = result.kind === 'refused' ? options.answered : null;
    (waiting.shift() ?? unasked)?.(result);
  };

  async function sign({ provider, challenge }: Welcome, document: string): Promise<void> {
    const digest = createHash('sha256').update(document).digest('hex');
    const text = registrationText({ router: options.router, provider, challenge, digest });
    send({
      type: 'register',
      document,
      router: options.router,
      signature: wallet === null ? null : await wallet.sign(text),
    });
  }

  function register(document: string, answered: (answer: RegistrationAnswer) => void): void {
    if (welcome === null) return;
    waiting.push(answered);
    sign(welcome, document).catch((error: unknown) =>
      options.broken(`the registration could not be signed: ${String(error)}`),
    );
  }

  let greeted = false;

  function take(message: JsonObject): void {
    switch (message['type']) {
      case 'welcome': {
        // A router cannot make the wallet sign again: only the first welcome of a connection counts.
        if (greeted) return;
        greeted = true;
        welcome = readWelcome(message);
        if (welcome === null) return options.broken('the welcome of the router is not complete');
        // The provider id is part of the text that the wallet signs, so it must be the wallet's own.
        if (wallet !== null && welcome.provider !== wallet.providerId)
          return options.broken('the router identified this wallet as another provider');
        options.welcomed(welcome);
        return register(options.document(), options.answered);
      }
      case 'registered':
        return answer({
          kind: 'registered',
          services: listOf(message['services']).filter((name) => typeof name === 'string'),
          raised: listOf(message['raised']).filter(isObject).map(readRaised),
        });
      case 'refused':
        return answer({
          kind: 'refused',
          message: textOf(message['message']),
          problems: listOf(message['problems']).filter(isObject).map(readProblem),
        });
      case 'replaced':
        return options.replaced();
      case 'draining':
        return options.draining(typeof message['banned'] === 'string' ? message['banned'].slice(0, WORDS_MAX) : null);
      // Unknown messages are ignored: a newer gateway may send them.
      default:
    }
  }

  const lines = createLines({
    bytesMax: CONTROL_LINE_BYTES_MAX,
    line(text) {
      let message: unknown;
      try {
        message = parseForeign(text, BOUNDS.routerMessage);
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
  return { send, register: (next) => new Promise((resolve) => register(next, resolve)) };
}

/** Each entry becomes a line of the log. A file has at most this many blocks. */
const LISTED_MAX = 10_000;
/** The signed text has one fact per line, so a challenge must not contain a line break. */
const CHALLENGE = /^[!-~]{1,128}$/;

/** The most of the router's words about payouts, or about a ban, that is logged. */
const WORDS_MAX = 1_000;

function readWelcome({ provider, account, challenge, version, payouts }: JsonObject): Welcome | null {
  if (typeof provider !== 'string' || typeof challenge !== 'string' || !CHALLENGE.test(challenge)) return null;
  return {
    type: 'welcome',
    provider,
    account: textOf(account),
    challenge,
    version: textOf(version),
    ...(typeof payouts === 'string' ? { payouts: payouts.slice(0, WORDS_MAX) } : {}),
  };
}

function readProblem({ key, wrong, right }: JsonObject): RegistrationProblem {
  return { key: textOf(key), wrong: textOf(wrong), right: textOf(right) };
}

const readRaised = ({ service, until }: JsonObject): RaisedPrice => ({
  service: textOf(service),
  until: textOf(until),
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]).slice(0, LISTED_MAX) : [];
