import { MUST_BE, objectField, routingFields } from '#gateway';

/** The default number of rounds in which the gateway calls tools for a model. */
export const TOOL_ROUNDS_DEFAULT = 8;
const TOOL_ROUNDS_MAX = 32;

/** A member of an earlier reply that a client sends back. */
const echoed = { description: 'Of the earlier reply. Not read.' };
const taskName = {
  type: ['string', 'null'],
  minLength: 1,
  maxLength: 512,
  [MUST_BE]: 'a string of 1 to 512 characters',
};

/** Fields that the gateway acts on. They are not forwarded. */
export const gatewayFields = {
  ...routingFields,
  max_tool_rounds: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: TOOL_ROUNDS_MAX,
    description: `How many times the model may ask for tools that the gateway calls. Then it must answer. Default ${TOOL_ROUNDS_DEFAULT}. Not forwarded.`,
    [MUST_BE]: `an integer from 1 to ${TOOL_ROUNDS_MAX}`,
  },
  tollgate: objectField(
    'The task of an agent that this request continues. The field `tollgate` of an earlier reply has its ids. Not forwarded.',
    {
      title: 'TaskOfAgent',
      properties: {
        task_id: taskName,
        context_id: taskName,
        state: echoed,
        cost_pending: echoed,
        note: echoed,
        messages: echoed,
        tool_calls: echoed,
      },
      additionalProperties: false,
    },
  ),
} as const;
