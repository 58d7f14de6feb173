import fc from 'fast-check';

/** Values that nobody expects in JSON. */
export const weird = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom<unknown>(
      null,
      '',
      'x',
      0,
      -1,
      7,
      1.5,
      1e300,
      true,
      [],
      {},
      [[]],
      [null],
      [{}],
      'error',
      '__proto__',
    ),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
);

/** A part of a content of the Gemini API. */
export function anyPart(): fc.Arbitrary<unknown> {
  const blob = fc.oneof(
    weird,
    fc.record({ mimeType: fc.constantFrom<unknown>('image/png', 'application/pdf', 'x', 1), data: weird }),
  );
  return fc.oneof(
    weird,
    fc.record(
      {
        text: weird,
        thought: fc.boolean(),
        thoughtSignature: fc.oneof(weird, fc.constantFrom('dGcxLmE=', 'dGczX2E=', 'E')),
      },
      { requiredKeys: [] },
    ),
    fc.record({ inlineData: blob }),
    fc.record({ fileData: fc.oneof(weird, fc.record({ fileUri: weird, mimeType: weird })) }),
    fc.record({ functionCall: fc.oneof(weird, fc.record({ name: weird, args: weird, id: weird })) }),
    fc.record({
      functionResponse: fc.oneof(
        weird,
        fc.record({
          name: weird,
          response: weird,
          id: weird,
          parts: fc.oneof(weird, fc.array(fc.record({ inlineData: blob }))),
        }),
      ),
    }),
    fc.record({ executableCode: weird }),
  );
}
