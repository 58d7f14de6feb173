import { GatewayError } from '#errors';
import type { ModelFacts } from '#config';
import { isOfKind, kindOf, MODEL_KINDS, type ModelKind } from '#config/model-kinds';
import type { Offer } from '#catalog';

type Kinds = Pick<ModelFacts, 'outputModalities' | 'wires'>;

/** Whether a model is offered over OpenAI's Realtime API alone. */
const isRealtimeOnly = ({ wires }: Kinds): boolean => wires?.every((wire) => wire === 'realtime') === true;

/**
 * Whether a model can be called for chat. A model of another kind can be, if it names text first, and one of the
 * Realtime API, if that is not its only wire.
 */
export const chats = (model: Kinds): boolean =>
  (model.outputModalities[0] === 'text' || kindOf(model) === null) && !isRealtimeOnly(model);

/** Throws GatewayError `unprocessable` for a model whose kind another route calls. `chat`: the routes of chat. */
export function requireKind({ service, model }: Offer, requiredKind: ModelKind | 'chat'): void {
  if (requiredKind === 'chat' ? chats(model!) : isOfKind(model!, requiredKind)) return;
  if (isRealtimeOnly(model!))
    throw new GatewayError('unprocessable', `${service} is served over WebSocket alone. Open a session at /realtime`, {
      param: 'model',
    });
  const kind = chats(model!) ? null : kindOf(model!);
  const does = kind === null ? MODEL_KINDS[requiredKind as ModelKind].doesNot : MODEL_KINDS[kind].does;
  const [path] = kind === null ? ['/chat/completions'] : MODEL_KINDS[kind].paths;
  throw new GatewayError('unprocessable', `${service} ${does}. Call it at ${path}`, { param: 'model' });
}
