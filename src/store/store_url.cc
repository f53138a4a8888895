#include "store/store_url.h"

namespace perdure {

std::string without_password(std::string_view url) {
  std::string shown(url);
  std::size_t host = shown.find("://");
  if (host == std::string::npos) return shown;
  host += 3;
  std::size_t at = shown.rfind('@', shown.find('/', host)), colon = shown.find(':', host);
  if (at != std::string::npos && at > host && colon < at) shown.erase(colon, at - colon);
  // libpq takes it as a parameter too.
  for (std::size_t word; (word = shown.find("password=")) != std::string::npos;)
    shown.erase(word, shown.find('&', word) - word);
  return shown;
}

}  // namespace perdure
