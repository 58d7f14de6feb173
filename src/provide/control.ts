import { createHash } from 'node:crypto';
import type { ServerHttp2Stream } from 'node:http2';
import {
  CONTROL_LINE_BYTES_MAX,
  createLines,
  registrationText,
  type GatewayMessage,
  type ProxyMessage,
  type RegistrationProblem,
} from '#gateway/wire';
import type { Wallet } from './wallet/index.ts';

export interface ControlOptions {
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

/** The proxy's end of the control stream: answers the welcome with the signed registration and tells what the gateway says to it. */
export function answerControl(options: ControlOptions): { send(message: ProxyMessage): void } {
  const { stream, wallet, document } = options;
  const send = (message: ProxyMessage) => {
    if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
  };

  async function register(welcome: Welcome): Promise<void> {
    const digest = createHash('sha256').update(document).digest('hex');
    const text = registrationText({ router: options.router, provider: welcome.provider, challenge: welcome.challenge, digest });
    send({ type: 'register', document, router: options.router, signature: wallet === null ? null : await wallet.sign(text) });
  }

  function take(message: Partial<GatewayMessage>): void {
    switch (message.type) {
      case 'welcome': {
        const welcome = message as Welcome;
        // Its provider is the text that the wallet signs as its own.
        if (wallet !== null && welcome.provider !== wallet.providerId) return options.broken('the router takes this wallet for another provider');
        options.welcomed(welcome);
        register(welcome).catch((error: unknown) => options.broken(`the registration could not be signed: ${String(error)}`));
        return;
      }
      case 'registered':
        return options.registered(Array.isArray(message.services) ? message.services.map(String) : []);
      case 'refused':
        return options.refused(String(message.message), Array.isArray(message.problems) ? message.problems : []);
      case 'replaced':
        return options.replaced();
      case 'draining':
        return options.draining();
      case undefined:
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
      if (typeof message === 'object' && message !== null) take(message);
    },
    tooLong: () => options.broken('the router said too long a line'),
  });
  stream.on('data', (chunk: Buffer) => lines.push(chunk));
  stream.on('close', () => options.broken('the router closed the control stream'));
  stream.respond({ ':status': 200, 'content-type': 'application/jsonl' });
  return { send };
}
