import { event, startWireUpstream, type WireUpstream } from '../../openai/native/support/wire-upstream.ts';

/** A reply of a provider, in words that all wires can say. */
export interface VendorReply {
  /** The usage in the form of the wire. */
  readonly usage?: object | undefined;
  /** The tier that the reply names, where the wire names it. */
  readonly tier?: string | undefined;
  /** Items of a response before its message. */
  readonly items?: readonly object[];
}

const TEXT = 'Good morning';

/** A provider that speaks chat, messages and responses, and replies as `reply` says. */
export async function startVendor(): Promise<WireUpstream & { reply: VendorReply }> {
  const upstream = await startWireUpstream();
  const reply: VendorReply = {};
  const vendor = Object.assign(upstream, { reply });
  upstream.answer = ({ path, body }) => {
    const isStream = body['stream'] === true;
    if (path.endsWith('/messages')) return { text: isStream ? messageEvents(vendor.reply) : message(vendor.reply) };
    if (path.endsWith('/responses')) return { text: isStream ? responseEvents(vendor.reply) : response(vendor.reply) };
    return { text: isStream ? chunks(vendor.reply) : completion(vendor.reply) };
  };
  return vendor;
}

const named = (name: string, value: string | undefined) => (value === undefined ? {} : { [name]: value });

function completion({ usage, tier }: VendorReply): string {
  const choices = [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }];
  return JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    ...named('service_tier', tier),
    choices,
    usage,
  });
}

function chunks({ usage, tier }: VendorReply): string {
  const common = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...named('service_tier', tier) };
  const all = [
    ...TEXT.split(' ').map((content) => ({
      ...common,
      choices: [{ index: 0, delta: { content }, finish_reason: null }],
    })),
    { ...common, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...common, choices: [], usage },
  ];
  return [...all.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
}

const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
const usageOf = ({ usage, tier }: VendorReply) => ({ ...usage, ...named('service_tier', tier) });

const message = (reply: VendorReply): string =>
  JSON.stringify({
    ...MESSAGE,
    content: [{ type: 'text', text: TEXT }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: usageOf(reply),
  });

const messageEvents = (reply: VendorReply): string =>
  [
    event('message_start', {
      message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...usageOf(reply), output_tokens: 1 } },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }),
    event('content_block_stop', { index: 0 }),
    // As Anthropic's API: the end repeats the counts, and not the tier.
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: reply.usage }),
    event('message_stop', {}),
  ].join('');

const itemsOf = ({ items = [] }: VendorReply) => [
  ...items,
  {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: TEXT, annotations: [] }],
  },
];

const responseOf = (reply: VendorReply, status: string) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status,
  output: status === 'completed' ? itemsOf(reply) : [],
  ...named('service_tier', status === 'completed' ? reply.tier : 'auto'),
  ...(status === 'completed' ? { usage: reply.usage } : {}),
});

const response = (reply: VendorReply): string => JSON.stringify(responseOf(reply, 'completed'));

function responseEvents(reply: VendorReply): string {
  let sequence = 0;
  const numbered = (type: string, more: object) => event(type, { sequence_number: sequence++, ...more });
  return [
    numbered('response.created', { response: responseOf(reply, 'in_progress') }),
    numbered('response.output_text.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta: TEXT }),
    ...itemsOf(reply).map((item, index) => numbered('response.output_item.done', { output_index: index, item })),
    numbered('response.completed', { response: responseOf(reply, 'completed') }),
  ].join('');
}
