/** A field of a tool's arguments. */
interface SchemaField {
  readonly name: string;
  /** Its type in a few words: `text`, `number`, `one of a, b`. */
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
  readonly example: unknown;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly items?: Schema;
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null;

const ENUM_SHOWN = 6;

/** The fields of an object's JSON Schema. Strangers write it, so any member may be missing or have another type. */
export function fieldsOf(schema: unknown): readonly SchemaField[] {
  if (!isSchema(schema) || !isSchema(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties)
    .filter(([, field]) => isSchema(field))
    .map(([name, field]) => ({
      name,
      type: wordsOf(field),
      required: required.includes(name),
      description: typeof field.description === 'string' ? field.description : '',
      example: valueOf(field),
    }));
}

/** Example arguments that fit the schema. They have the required fields, and fields with a default or an example. */
export function exampleOf(schema: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    fieldsOf(schema)
      .filter(({ required, example }) => required || example !== undefined)
      .map(({ name, example, type }) => [
        name,
        example ?? (type.startsWith('number') ? 1 : type === 'yes or no' ? true : '…'),
      ]),
  );
}

function valueOf(field: Schema): unknown {
  return (
    field.default ??
    (Array.isArray(field.examples) ? field.examples[0] : undefined) ??
    (Array.isArray(field.enum) ? field.enum[0] : undefined)
  );
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'number',
  integer: 'whole number',
  boolean: 'yes or no',
  array: 'list',
  object: 'object',
  null: 'nothing',
};

function wordsOf(field: Schema): string {
  if (Array.isArray(field.enum)) {
    const shown = field.enum.slice(0, ENUM_SHOWN).map(String).join(', ');
    return `one of ${shown}${field.enum.length > ENUM_SHOWN ? ', …' : ''}`;
  }
  const types = (Array.isArray(field.type) ? field.type : [field.type]).filter((type) => typeof type === 'string');
  const words = types.map((type: string) => WORDS[type] ?? type).join(' or ');
  if (types[0] === 'array' && isSchema(field.items)) return `list of ${wordsOf(field.items)}`;
  return words || 'any value';
}
