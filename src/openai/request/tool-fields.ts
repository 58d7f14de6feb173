import { MUST_BE, nameSchema } from '#gateway';

const CHOICE = '"auto", "none", "required" or an object such as {"type": "function", "function": {"name": "…"}}';

const toolNames = {
  type: ['array', 'null'],
  maxItems: 256,
  items: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of a tool' },
  [MUST_BE]: 'an array of at most 256 names of tools',
};

export const toolFields = {
  tools: {
    type: ['array', 'null'],
    maxItems: 1024,
    items: {
      type: 'object',
      required: ['type'],
      properties: {
        type: { type: 'string', [MUST_BE]: 'the type of the tool, such as "function"' },
        function: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of the function' },
          },
          [MUST_BE]: 'an object with a name',
        },
        service: {
          ...nameSchema,
          description: 'With type `mcp`: the service whose tools the gateway calls for the model.',
          [MUST_BE]: 'the name of a tool service',
        },
        allowed_tools: {
          ...toolNames,
          description: 'With type `mcp`: the tools of the service that the model may call. Default all.',
        },
        disallowed_tools: {
          ...toolNames,
          description: 'With type `mcp`: tools of the service that the model may not call. Default none.',
        },
      },
      allOf: [
        {
          anyOf: [
            {
              required: ['service'],
              properties: { service: { [MUST_BE]: 'the name of a tool service, whose tools the gateway calls' } },
            },
            { properties: { type: { not: { const: 'mcp' } } } },
          ],
        },
        {
          anyOf: [
            { required: ['function'], properties: { function: { [MUST_BE]: 'an object with a name' } } },
            { properties: { type: { not: { const: 'function' } } } },
          ],
        },
      ],
      [MUST_BE]:
        'an object such as {"type": "function", "function": {"name": "…"}}, or {"type": "mcp", "service": "…"}',
    },
    description:
      'Tools that the model may ask for. The client calls a `function`. The gateway calls the tools of a service that has type `mcp` here. ' +
      'Each of these calls is billed separately.',
    [MUST_BE]: 'an array of at most 1024 tools',
  },
  tool_choice: {
    anyOf: [
      { enum: ['auto', 'none', 'required', 'any', null], [MUST_BE]: CHOICE },
      {
        type: 'object',
        required: ['type'],
        properties: { type: { type: 'string' } },
      },
    ],
    description:
      'Which tool to use: "auto", "none", "required", or a tool as {"type": "function", "function": {"name": "…"}}. Some providers say "any" for "required".',
    [MUST_BE]: CHOICE,
  },
} as const;
