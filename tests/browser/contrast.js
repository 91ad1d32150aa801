// Marks those of the elements that axe-core's rule about contrast has to check: of each appearance that has not passed
// it before, the first. The appearance is what the rule depends on: the font, the colours, what is painted behind the
// text, whether the control is disabled. An element that leaves the box of an ancestor with a background, or that
// another element may cover, has no appearance here and is always marked.
([elements, passed, mark]) => {
    const looks = new Map();
    const hash = (text) => {
        let [high, low] = [0xdeadbeef, 0x41c6ce57];
        for (let place = 0; place < text.length; place++) {
            high = Math.imul(high ^ text.charCodeAt(place), 2654435761);
            low = Math.imul(low ^ text.charCodeAt(place), 1597334677);
        }
        high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
        low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
        return 4294967296 * (2097151 & low) + (high >>> 0);
    };
    const isInside = (inner, outer) =>
        inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
        inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    const isApart = (one, other) =>
        one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
    const paintOf = ({ backgroundColor, backgroundImage, opacity, filter, mixBlendMode, clipPath, maskImage }) =>
        [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, clipPath, maskImage].join();
    const nothing = "rgba(0, 0, 0, 0),none,1,none,normal,none,none";

    // `paints` is what an element and its ancestors paint, `boxes` where those do that its content could leave. What is
    // inside an element that clips or scrolls its content leaves nothing beyond that element.
    const lookOf = (element) => {
        if (!element) return { paints: "", boxes: [], leavesWithin: false };
        if (looks.has(element)) return looks.get(element);
        const above = lookOf(element.parentElement), style = getComputedStyle(element), paint = paintOf(style);
        const isPage = element.matches("html, body"), isPlain = paint === nothing;
        const box = element.getBoundingClientRect(), clips = !isPage && style.overflow !== "visible";
        const leaves = above.leavesWithin || !above.boxes.every((outer) => isInside(box, outer));
        const isMoved = style.position !== "static" || style.transform !== "none" || style.float !== "none" ||
            style.margin.includes("-");
        const look = {
            style, box, leaves,
            paints: isPlain ? above.paints : hash(above.paints + paint),
            boxes: isPage || clips ? [] : isPlain ? above.boxes : [...above.boxes, box],
            leavesWithin: clips ? leaves : above.leavesWithin,
            mayCover: !isPage && isMoved,
        };
        looks.set(element, look);
        return look;
    };
    const covers = [...document.body.querySelectorAll("*")]
        .filter((element) => element.checkVisibility() && lookOf(element).mayCover);

    // The rule judges elements with text of their own, and controls with a value.
    const textOf = (element) => element.matches("input, select, textarea")
        ? element.value
        : [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("");
    const appearanceOf = (element) => {
        const { style, box, leaves, paints } = lookOf(element);
        const isCoveredBy = (other) =>
            !isApart(box, lookOf(other).box) && !other.contains(element) && !element.contains(other);
        if (leaves || covers.some(isCoveredBy)) return null;
        const { color, fontSize, fontWeight, textShadow, webkitTextStroke, display, visibility, textIndent } = style;
        const font = [color, fontSize, fontWeight, textShadow, webkitTextStroke, display, visibility, textIndent];
        const disabled = element.closest(":disabled, [aria-disabled=true]") || element.closest("label")?.control?.disabled;
        // Signs that are not words are exempt, and so may be a single character.
        const text = textOf(element), words = /[\p{L}\p{N}].*[\p{L}\p{N}]/su.test(text) ? "words" : text.trim();
        return hash([element.tagName, element.type, !!disabled, words, paints, ...font].join());
    };
    document.querySelectorAll(`[${mark}]`).forEach((element) => element.removeAttribute(mark));
    const marked = new Set(passed), added = [];
    for (const element of elements.filter((element) => textOf(element).trim())) {
        const appearance = appearanceOf(element);
        if (marked.has(appearance)) continue;
        element.setAttribute(mark, "");
        if (appearance === null) continue;
        marked.add(appearance);
        added.push(appearance);
    }
    return added;
}
