/* What the reference says of a request beyond the keywords that validate it. */

/**
 * The annotation of a schema node with keywords that the code checks itself, because its errors say more than those of
 * a validator. The reference has them instead. `allOf` holds rules about the members of an object.
 */
export const DOCUMENTED = 'x-documented';

type Rule = Readonly<Record<string, unknown>>;

/** The object has this member, and it is not null: for most requests null is the same as absent. */
export const hasValue = (name: string): Rule => ({
  required: [name],
  properties: { [name]: { not: { const: null } } },
});

/** The object has at most one of these members. */
export const notTogether = (one: string, other: string): Rule => ({
  not: { allOf: [hasValue(one), hasValue(other)] },
});

/** The object has both of these members, or none of them. */
export const onlyTogether = (one: string, other: string): Rule => ({
  anyOf: [{ allOf: [hasValue(one), hasValue(other)] }, { not: { anyOf: [hasValue(one), hasValue(other)] } }],
});

/** If `condition` holds, `rule` holds too. */
export const onlyIf = (condition: Rule, rule: Rule): Rule => ({ anyOf: [{ not: condition }, rule] });

/** The text or number of an amount in USD. */
export const DOCUMENTED_USD = {
  minimum: 0,
  maximum: 1_000_000_000,
  pattern: '^[0-9]{1,9}(?:\\.[0-9]{1,6})?$',
} as const;
