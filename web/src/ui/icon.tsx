import { createElement, type FunctionComponent, type SVGProps } from 'react';

/** An icon as the files of lucide have it: elements of SVG in a square of 24. */
interface IconData {
  readonly node: readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[];
}

/**
 * Makes the component of an icon. The build puts this in the place of lucide's own, which has contexts, classes and
 * forms that these pages do not use.
 */
export default function createIcon({ node }: IconData): FunctionComponent<SVGProps<SVGSVGElement> & { size?: number }> {
  const parts = node.map(([tag, attributes]) => createElement(tag, attributes));
  return ({ size = 24, ...rest }) => (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={2}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden
      {...rest}
    >
      {parts}
    </svg>
  );
}
