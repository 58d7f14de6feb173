type Fields = Readonly<Record<string, object>>;

interface FormOf {
  readonly properties: Fields;
  readonly required: readonly string[];
  /** The fields that are files, with what they are. */
  readonly files: Readonly<Record<string, string>>;
  /** Those of them that may be sent several times. */
  readonly several?: readonly string[];
  readonly example: Readonly<Record<string, unknown>>;
}

/**
 * The schema of a form, for the reference. It has the fields of the same body in JSON, and files where that has texts.
 * The reader of forms makes the one of the other, so this schema validates nothing.
 */
export const formSchema = ({ properties, required, files, several = [], example }: FormOf) => ({
  type: 'object',
  description: 'A field whose value is not a text may be sent as text or as a part of type `application/json`.',
  required,
  additionalProperties: true,
  examples: [example],
  properties: {
    ...Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, withoutNull(field)])),
    ...Object.fromEntries(
      Object.entries(files).map(([name, description]) => {
        const file = { type: 'string', format: 'binary' };
        return [name, several.includes(name) ? { type: 'array', items: file, description } : { ...file, description }];
      }),
    ),
  },
});

/** A form has no null: a field is left out instead. A schema with a name is the same everywhere. */
function withoutNull(field: object): object {
  if ('title' in field) return field;
  const { type, enum: values, ...rest } = field as { readonly type?: unknown; readonly enum?: readonly unknown[] };
  const types = Array.isArray(type) ? type.filter((one) => one !== 'null') : type;
  return {
    ...rest,
    ...(types === undefined ? {} : { type: Array.isArray(types) && types.length === 1 ? (types[0] as string) : types }),
    ...(values === undefined ? {} : { enum: values.filter((value) => value !== null) }),
  };
}

/**
 * Describes the body of a route: JSON, and a form where it takes one. The form stands first, because a generator that
 * knows only one type of body takes the first: so its clients upload files.
 */
export const bodyOrForm = ({ schema, form }: { readonly schema: object; readonly form?: object }) =>
  form === undefined
    ? { consumes: ['application/json'], body: schema }
    : { body: { content: { 'multipart/form-data': { schema: form }, 'application/json': { schema } } } };
