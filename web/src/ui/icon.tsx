import { createElement, type FunctionComponent, type SVGProps } from 'react';

/** An icon in the form of lucide's files: SVG elements in a square of 24. */
interface IconData {
  readonly node: readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[];
}

/**
 * Makes the component of an icon. The build uses it instead of lucide's own function, which has features that these
 * pages don't need.
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
