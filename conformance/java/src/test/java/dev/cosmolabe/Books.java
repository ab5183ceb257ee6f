package dev.cosmolabe;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/**
 * Twelve books by seven authors: what the cases about queries ask for.
 *
 * <p>`stars` has a value of every type and is missing twice; everything else has one type.
 */
final class Books {
    static final List<JsonNode> ALL = Support.rows("""
            [{id: 'hunger', author: 'Hamsun', land: 'no', year: 1890, price: 12, stars: 5,
              tags: ['classic', 'short'],
              editions: [{lang: 'no', copies: 300}, {lang: 'en', copies: 500}]},
             {id: 'pan', author: 'Hamsun', land: 'no', year: 1894, price: 9.5, stars: 4,
              tags: ['classic'], editions: [{lang: 'no', copies: 100}]},
             {id: 'peer', author: 'Ibsen', land: 'no', year: 1867, price: 15,
              tags: ['play', 'classic'], editions: []},
             {id: 'ghosts', author: 'Ibsen', land: 'no', year: 1881, price: 8, stars: null,
              tags: ['play']},
             {id: 'inferno', author: 'Strindberg', land: 'se', year: 1897, price: 11, stars: 3,
              tags: [], editions: [{lang: 'fr', copies: 40}, {lang: 'sv', copies: 80}]},
             {id: 'father', author: 'Strindberg', land: 'se', year: 1887, price: 7,
              stars: 'three', tags: ['play']},
             {id: 'gösta', author: 'Lagerlöf', land: 'se', year: 1891, price: 14, stars: 5,
              tags: ['classic', 'long']},
             {id: 'nils', author: 'Lagerlöf', land: 'se', year: 1906, price: 20, stars: [5],
              tags: ['children']},
             {id: 'winter', author: 'Blixen', land: 'dk', year: 1942, price: 13,
              stars: {of: 5}},
             {id: 'africa', author: 'Blixen', land: 'dk', year: 1937, price: 16,
              tags: ['memoir', 'long']},
             {id: 'kalevala', author: 'Lönnrot', land: 'fi', year: 1835, price: 25, stars: true,
              tags: ['epic', 'long', 'classic']},
             {id: 'egyptian', author: 'Waltari', land: 'fi', year: 1945, price: 18, stars: false,
              tags: ['long']}]""");

    private Books() {}
}
