import { createSealedCalls } from '../../../../src/openai/chat/reply/echo-fields.ts';
import { createSealedThinking, type SealedThinking } from '../../../../src/openai/chat/reply/sealed-thinking.ts';
import { WireRequest } from '../../../../src/openai/translated/wire-request.ts';

const SECRET = Buffer.alloc(32, 7);
const THINKING = createSealedThinking(SECRET);

/** A request of account `a` at `gateway.example`. `model`: default `m`. */
export const wireRequest = (model = 'm', thinking: Partial<SealedThinking> = {}): WireRequest =>
  new WireRequest(
    { id: 'r', headers: {}, host: 'gateway.example', originalUrl: '/api/v1' },
    { account: 'a', key: null, wallet: null },
    model,
    {
      thinking: { ...THINKING, ...thinking },
      calls: createSealedCalls(SECRET),
      publicHost: null,
      targets: () => ({}),
      now: () => 5_000,
    },
  );

/** Takes everything as thinking that this gateway signed. */
export const TRUSTING: Partial<SealedThinking> = { open: () => ({ reasoning_content: 'x' }) };
